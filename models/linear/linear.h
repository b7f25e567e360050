// Linear layers on rows, with own matrix products (kernels/) where they are faster than LibTorch's.
//
//   at::Tensor y = linear::Linear(x, weight, bias);            // x weight^T + bias
//   at::Tensor z = linear::AddLinear(x, y, projection);        // x + y projection^T
//   at::Tensor s = linear::Linear(x, wte);                     // logits of a tied head
//
//   x          (rows, in); copied unless one of its strides is 1
//   weight     (out, in), of x's dtype
//   bias       (out), or undefined
//   residual   (rows, out)
//   returned   (rows, out); gradients by autograd, once differentiable
//
// Own products are used for float32 and bfloat16 on AMD CPUs with AVX-512 (kernels/product.h), from kFewestRows rows on
// and outside autocast; else this is at::linear. With own products a row's result is bitwise identical in any
// batch of that size and on any number of threads (at::set_num_threads), and a bfloat16 product, its bias and
// residual are summed in float32 and rounded once. Local. Measurements:
// docs/decisions/011-own-products-for-linear-layers.md.
#ifndef PLAIT_MODELS_LINEAR_LINEAR_H_
#define PLAIT_MODELS_LINEAR_LINEAR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::linear {

// Fewest rows for own products: packing a weight costs as much as multiplying it by a few rows.
constexpr std::int64_t kFewestRows = 32;

// Aborts if the shapes of x and weight do not fit.
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// Linear(x, weight, bias) + residual, without materializing the product.
at::Tensor AddLinear(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias = {});

// left right + addend (may be undefined), with left (rows, inner) and right (inner, columns), by the same choice of
// kernels; for backward passes of other layers. Not recorded by autograd.
at::Tensor Product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& addend = {});

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_LINEAR_H_
