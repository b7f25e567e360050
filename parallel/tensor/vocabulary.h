// Embedding and cross entropy over a vocabulary that is split over the tensor axis: rank r has the rows
// PartOf(vocabulary) of the table. Nothing is padded: parts may differ by one row. Logits are never gathered.
//
//   const Residual x = ToResidual(axis, Embedding(axis, table, vocabulary, tokens));
//   const Shard<1> logits = ColumnLinear(axis, normed, {{table}})[0];
//   models::LossSum loss = CrossEntropySum(axis, logits, targets);   // the same on all ranks
//
// Shoeybi et al., arXiv:1909.08053, section 3. Recorded by autograd, once differentiable. Collective along the
// axis; a group of one has the bits of at::embedding and models/cross_entropy.
#ifndef PLAIT_PARALLEL_TENSOR_VOCABULARY_H_
#define PLAIT_PARALLEL_TENSOR_VOCABULARY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/block_model.h"
#include "parallel/tensor/tensor_axis.h"
#include "parallel/tensor/values.h"

namespace plait::tensor_parallel {

// table (rows of this rank, width), tokens of any shape of int64, the same on all ranks -> (tokens, width),
// zero where another rank has the row.
Partial Embedding(const TensorAxis& axis, const at::Tensor& table, std::int64_t vocabulary,
                  const at::Tensor& tokens);

// The sum of -log softmax(logits)[target] over the rows whose target is not negative, and their number, as
// models::CrossEntropySum of whole logits. logits (rows, columns of this rank), targets (rows) of int64, below
// `vocabulary`, the same on all ranks. Three numbers per row are reduced.
models::LossSum CrossEntropySum(const TensorAxis& axis, const Shard<1>& logits, std::int64_t vocabulary,
                                const at::Tensor& targets, std::int64_t valid = -1);

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_VOCABULARY_H_
