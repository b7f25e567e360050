// Dropout whose mask is a function of a seed and of each element's index in the tensor of the whole batch: the
// same for any number of ranks, whatever they split, and when activation checkpointing repeats a forward.
//
//   // rows r of (samples * seq, width), of which this process has some
//   at::Tensor y = dropout::Dropout(x, {.probability = 0.1, .seed = seed}, /*row_indices=*/rows);
//
//   x            (rows, columns), floating
//   row_indices  (rows) of int64: of each row in the whole tensor; element (i, j) has the index
//                row_indices[i] * whole_columns + first_column + j, or + column_indices[j]
//   returned     x / (1 - p) where the mask keeps, else 0; recorded by autograd, which computes the mask again
//
// The mask keeps an element if the 32-bit number that the counter-based generator "squares" (Widynski,
// arXiv:2004.06278, four rounds) has for its index and the key derived from the seed is at least p 2^32. On
// other devices than processors the same numbers are made by LibTorch's integer operators. Local.
#ifndef PLAIT_PARALLEL_DROPOUT_DROPOUT_H_
#define PLAIT_PARALLEL_DROPOUT_DROPOUT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::dropout {

struct Mask {
  double probability = 0;  // of dropping; 0 to 1, without 1
  std::uint64_t seed = 0;  // of this layer's mask in this step: base::DeriveSeed
};

// Where the elements of a tensor are in the whole one.
struct Elements {
  at::Tensor row_indices;  // on any device
  std::int64_t whole_columns = 0;
  std::int64_t first_column = 0;
  at::Tensor column_indices = {};  // (columns) of int64; undefined: first_column + j
};

at::Tensor Dropout(const at::Tensor& x, const Mask& mask, const Elements& elements);

// Dropout of attention probabilities (batch, heads, queries, keys) of (samples, whole_heads, length, length),
// which ranks may split along any dimension. `query_positions`, `key_positions`: of int64, in the whole
// sequence; keys undefined: all of it.
struct ProbabilityDropout {
  Mask mask = {};
  std::int64_t first_sample = 0, first_head = 0, whole_heads = 0;
};
at::Tensor DropProbabilities(const at::Tensor& probabilities, const ProbabilityDropout& dropout,
                             const at::Tensor& query_positions, const at::Tensor& key_positions,
                             std::int64_t length);

namespace internal {
// By LibTorch's operators, on any device: 1 where the mask keeps.
at::Tensor Kept(const at::Tensor& x, const Mask& mask, const Elements& elements);
}  // namespace internal

}  // namespace plait::dropout

#endif  // PLAIT_PARALLEL_DROPOUT_DROPOUT_H_
