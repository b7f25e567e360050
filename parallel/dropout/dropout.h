// Dropout whose mask depends only on a seed and on each element's index in the tensor of the whole batch: the same for
// any number of ranks and any split, and when activation checkpointing repeats a forward.
//
//   // `rows`: which rows of the whole (samples * seq, width) this process has
//   at::Tensor y = dropout::Dropout(x, {.probability = 0.1, .seed = seed},
//                                   {.row_indices = rows, .whole_columns = width});
//
//   x            (rows, columns), floating-point
//   row_indices  (rows) of int64: index of each row in the whole tensor; element (i, j) has the index
//                row_indices[i] * whole_columns + first_column + j, or + column_indices[j]
//   returned     x / (1 - p) where the mask keeps, else 0; recorded by autograd, which recomputes the mask
//
// The mask keeps an element if the 32-bit output of the counter-based generator "squares" (Widynski, arXiv:2004.06278,
// four rounds) for its index, with a key derived from the seed, is at least p 2^32. On devices other than CPUs the same
// numbers are computed by LibTorch's integer operators. The program ends if shapes or the probability do not fit.
// Local.
#ifndef PLAIT_PARALLEL_DROPOUT_DROPOUT_H_
#define PLAIT_PARALLEL_DROPOUT_DROPOUT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::dropout {

struct Mask {
  double probability = 0;  // of dropping an element, in [0, 1)
  std::uint64_t seed = 0;  // for the mask of this layer and step: base::DeriveSeed
};

// The indices of the elements of a tensor in the whole tensor.
struct Elements {
  at::Tensor row_indices;  // on any device
  std::int64_t whole_columns = 0;
  std::int64_t first_column = 0;
  at::Tensor column_indices = {};  // (columns) of int64; undefined: first_column + j
};

at::Tensor Dropout(const at::Tensor& x, const Mask& mask, const Elements& elements);

// Dropout of attention probabilities (batch, heads, queries, keys), a part of (samples, whole_heads, length, length)
// that may be split along any dimension. `query_positions` (queries), `key_positions` (keys): int64 positions in the
// whole sequence; undefined key_positions: 0, 1, ...
struct ProbabilityDropout {
  Mask mask = {};
  std::int64_t first_sample = 0, first_head = 0, whole_heads = 0;
};
at::Tensor DropProbabilities(const at::Tensor& probabilities, const ProbabilityDropout& dropout,
                             const at::Tensor& query_positions, const at::Tensor& key_positions,
                             std::int64_t length);

namespace internal {
// By LibTorch's operators, on any device: boolean, true where the mask keeps.
at::Tensor Kept(const at::Tensor& x, const Mask& mask, const Elements& elements);
}  // namespace internal

}  // namespace plait::dropout

#endif  // PLAIT_PARALLEL_DROPOUT_DROPOUT_H_
