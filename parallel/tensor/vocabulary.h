// Embedding and cross entropy over a vocabulary that is split over the tensor axis: each rank has the rows
// axis.PartOf(vocabulary) of the table. There is no padding: parts may differ by one row. Logits are never gathered.
//
//   const Residual x = ToResidual(axis, Embedding(axis, table, vocabulary, tokens));
//   const Shard<1> logits = ColumnLinear(axis, normed, {{table}})[0];
//   models::LossSum loss = CrossEntropySum(axis, logits, vocabulary, targets);   // the same on all ranks
//
// Shoeybi et al., arXiv:1909.08053, section 3. Recorded by autograd; once differentiable. A group of one is bitwise
// identical to at::embedding and models/cross_entropy. On CPU a c10::Error if a token is not in [0, vocabulary).
#ifndef PLAIT_PARALLEL_TENSOR_VOCABULARY_H_
#define PLAIT_PARALLEL_TENSOR_VOCABULARY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/block_model.h"
#include "parallel/tensor/tensor_axis.h"
#include "parallel/tensor/values.h"

namespace plait::tensor_parallel {

// Local. table (rows of this rank, width); tokens int64 of any shape, the same on all ranks -> (tokens.numel(), width),
// zero for tokens whose row is on another rank.
Partial Embedding(const TensorAxis& axis, const at::Tensor& table, std::int64_t vocabulary,
                  const at::Tensor& tokens);

// Collective over the axis. The sum of -log softmax(logits)[target] over the rows whose target is not negative, and
// their number, as models::CrossEntropySum of whole logits. logits (rows, columns of this rank); targets (rows) int64,
// the same on all ranks; `valid`: the number of targets that are not negative, -1: counted here. Three numbers per row
// are all-reduced.
models::LossSum CrossEntropySum(const TensorAxis& axis, const Shard<1>& logits, std::int64_t vocabulary,
                                const at::Tensor& targets, std::int64_t valid = -1);

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_VOCABULARY_H_
