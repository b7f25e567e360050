// Memory-efficient cross entropy: keeps neither log-probabilities nor float32 copies of the logits.
//
//   LossSum loss = CrossEntropySum(logits, targets);   // logits (rows, classes), targets (rows) int64
//   loss.sum.div(loss.count).backward();               // the mean over valid targets
//
// at::cross_entropy_loss keeps the log-probabilities and allocates two more arrays of their size in backward.
// Here the backward pass computes softmax minus one-hot from the logits, which are kept anyway.
// Half-precision logits are converted to float32 a few rows at a time, and the sum is float32.
#ifndef PLAIT_MODELS_CROSS_ENTROPY_H_
#define PLAIT_MODELS_CROSS_ENTROPY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/block_model.h"

namespace plait::models {

// Returns the sum of -log softmax(logits)[target] over the rows whose target is not negative, and their number.
// Rows with a negative target are ignored, even if their logits are NaN (torch's ignore_index); a target of
// `classes` or more throws c10::Error on the CPU. The sum is float64 for float64 logits, else float32. Recorded by
// autograd, once differentiable.
// `valid`: the number of targets that are not negative (Batch::valid_targets); -1: counted here. On a device,
// counting, and selecting rows if some targets are ignored, synchronizes.
LossSum CrossEntropySum(const at::Tensor& logits, const at::Tensor& targets, std::int64_t valid = -1);

}  // namespace plait::models

#endif  // PLAIT_MODELS_CROSS_ENTROPY_H_
