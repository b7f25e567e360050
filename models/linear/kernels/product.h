// A product of matrices and what is added to it, as kernels of a processor family compute it.
//
//   out(i, j) = sum over k of left(i, k) right(k, j)  + bias(j) + residual(i, j)
//
// Sums are in float32, in the order of k, whatever the tile: a row's result is bitwise identical in any batch and on
// any number of threads. Elements are float or bfloat16; a bfloat16 result is rounded once, to nearest even.
#ifndef PLAIT_MODELS_LINEAR_KERNELS_PRODUCT_H_
#define PLAIT_MODELS_LINEAR_KERNELS_PRODUCT_H_

#include <cstdint>
#include <functional>

#include "models/simd/bfloat16.h"

namespace plait::linear {

using simd::BFloat16;

// Element (i, j) is data[i * row_stride + j * column_stride]; one of the strides is 1.
template <typename T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

// Out is T, or float for sums that are not rounded.
template <typename T, typename Out = T>
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  Matrix<T> left;   // (rows, inner)
  Matrix<T> right;  // (inner, columns)
  Out* out = nullptr;
  std::int64_t out_stride = 0;    // from row to row
  const Out* bias = nullptr;      // (columns), or none
  const Out* residual = nullptr;  // strides of out, or none; may be out itself
};

// Calls body(first, last) for ranges that make up [0, count), on one thread or on several.
using ForRanges = std::function<void(std::int64_t count,
                                     const std::function<void(std::int64_t first, std::int64_t last)>& body)>;

template <typename T>
struct ProductKernels {
  const char* name = "";
  void (*multiply)(const Product<T>& product, const ForRanges& for_ranges) = nullptr;
  // Many products, with threads over the panels of all of them.
  void (*multiply_each)(const Product<T>* products, std::int64_t count,
                        const ForRanges& for_ranges) = nullptr;
};

// The kernels of an AMD CPU with AVX-512 (bfloat16: AVX-512 BF16). Null on other CPUs, where LibTorch's products are as
// fast. The environment variable PLAIT_PRODUCTS overrides this: "own" uses the kernels on every CPU that has the
// instructions, anything else never.
template <typename T>
const ProductKernels<T>* UsableProducts();

// The kernels of one family each; call them only on a CPU with its instructions.
const ProductKernels<float>* Avx512Products();
const ProductKernels<BFloat16>* Avx512PairProducts();

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_KERNELS_PRODUCT_H_
