// Norms, activations, cross entropies and sums of rows on arrays, forward and backward, as kernels of a processor family
// compute them.
//
// Elements are float or bfloat16; everything is computed in float32 and rounded once. Every row, and every column of
// a sum over rows, is bitwise identical whatever is computed beside it.
#ifndef PLAIT_MODELS_ROWWISE_KERNELS_ROW_FUNCTIONS_H_
#define PLAIT_MODELS_ROWWISE_KERNELS_ROW_FUNCTIONS_H_

#include <cstdint>

#include "models/rowwise/activation_kind.h"
#include "models/simd/bfloat16.h"

namespace plait::rowwise {

using simd::BFloat16;

// Ba, Kiros and Hinton, arXiv:1607.06450: y = (x - mean) / sqrt(variance + epsilon) * weight + bias, row by
// row. Without `mean`: y = x / sqrt(mean square + epsilon) * weight + bias (Zhang and Sennrich, arXiv:1910.07467).
template <typename T>
struct LayerNormForward {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float epsilon = 0;
  const T* x = nullptr;       // (rows, width)
  const T* weight = nullptr;  // (width)
  const T* bias = nullptr;    // (width), or none
  T* y = nullptr;             // (rows, width)
  float* mean = nullptr;      // (rows), for the backward pass; or none
  float* inverse_deviation = nullptr;
};

template <typename T>
struct LayerNormBackward {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const T* x = nullptr;
  const T* weight = nullptr;
  const float* mean = nullptr;  // or none
  const float* inverse_deviation = nullptr;
  const T* of_y = nullptr;
  T* of_x = nullptr;       // (rows, width)
  T* of_weight = nullptr;  // (width); written from sums over all rows
  T* of_bias = nullptr;    // (width), or none
};

// y = f(x) * factor
template <typename T>
struct ActivationForward {
  Activation f = Activation::kGelu;
  const T* x = nullptr;
  const T* factor = nullptr;  // or none
  T* y = nullptr;
  T* slope = nullptr;  // f'(x), or none
};

template <typename T>
struct ActivationBackward {
  Activation f = Activation::kGelu;
  const T* x = nullptr;
  const T* factor = nullptr;  // or none
  const T* of_y = nullptr;
  T* of_x = nullptr;       // may be of_y itself
  T* of_factor = nullptr;  // if there is a factor; may be of_y itself
  T* y = nullptr;          // the values again, or none
};

// out[r] = sum of scale[i] rows[i] over its addends i, in their order
template <typename T>
struct RowSums {
  std::int64_t width = 0;
  const T* rows = nullptr;       // (n, width)
  const float* scale = nullptr;  // (n), or none: 1
  // The addends of row r are addends[first_addend[r]] to addends[first_addend[r + 1] - 1].
  const std::int64_t* first_addend = nullptr;
  const std::int64_t* addends = nullptr;
  T* out = nullptr;
};

// Row i was added, scaled, to row row_of[i].
template <typename T>
struct RowSumsBackward {
  std::int64_t width = 0;
  const T* of_out = nullptr;
  const std::int64_t* row_of = nullptr;
  const T* rows = nullptr;
  const float* scale = nullptr;
  T* of_rows = nullptr;
  float* of_scale = nullptr;
};

// loss[i] = log(sum over j of exp(logits[i][j])) - logits[i][targets[i]]
template <typename T>
struct CrossEntropyForward {
  std::int64_t width = 0;
  const T* logits = nullptr;              // (rows, width)
  const std::int64_t* targets = nullptr;  // (rows), 0 to width - 1
  float* losses = nullptr;                // (rows)
  // (rows), for the backward pass: the largest logit, and 1 over the sum of exponentials of the distances from it.
  float* largest = nullptr;
  float* inverse_sum = nullptr;
};

// of_logits[i][j] = scale (exp(logits[i][j] - largest[i]) inverse_sum[i] - [j == targets[i]])
template <typename T>
struct CrossEntropyBackward {
  std::int64_t width = 0;
  const T* logits = nullptr;
  const std::int64_t* targets = nullptr;
  const float* largest = nullptr;
  const float* inverse_sum = nullptr;
  float scale = 1;
  T* of_logits = nullptr;
};

template <typename T>
struct RowKernels {
  const char* name = "";
  // Rows [first, last) of a pass.
  void (*layer_norm)(const LayerNormForward<T>& norm, std::int64_t first, std::int64_t last) = nullptr;
  void (*layer_norm_of_x)(const LayerNormBackward<T>& norm, std::int64_t first, std::int64_t last) = nullptr;
  // Columns [first, last); `first` is a multiple of kColumnsTogether.
  void (*layer_norm_of_parameters)(const LayerNormBackward<T>& norm, std::int64_t first,
                                   std::int64_t last) = nullptr;
  // Numbers [first, last).
  void (*activate)(const ActivationForward<T>& pass, std::int64_t first, std::int64_t last) = nullptr;
  void (*activate_backward)(const ActivationBackward<T>& pass, std::int64_t first,
                            std::int64_t last) = nullptr;
  // Rows [first, last) of the result; backward: of the addends.
  void (*sum_rows)(const RowSums<T>& sums, std::int64_t first, std::int64_t last) = nullptr;
  void (*sum_rows_backward)(const RowSumsBackward<T>& sums, std::int64_t first, std::int64_t last) = nullptr;
  // Rows [first, last).
  void (*cross_entropy)(const CrossEntropyForward<T>& pass, std::int64_t first, std::int64_t last) = nullptr;
  void (*cross_entropy_backward)(const CrossEntropyBackward<T>& pass, std::int64_t first,
                                 std::int64_t last) = nullptr;
};

constexpr std::int64_t kColumnsTogether = 64;

// The kernels of this CPU, or null where LibTorch's operators are used.
template <typename T>
const RowKernels<T>* UsableRows();

// The kernels of one family each; call them only on a CPU with its instructions.
const RowKernels<float>* Avx512Rows();
const RowKernels<BFloat16>* Avx512PairRows();

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_ROW_FUNCTIONS_H_
