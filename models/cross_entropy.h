// Mean cross entropy of logits, with little memory: neither log-probabilities nor float32 copies are kept.
//
//   at::Tensor loss = CrossEntropy(logits, targets);   // logits (rows, classes), targets (rows) int64
//
// at::cross_entropy_loss keeps the log-probabilities and makes two more arrays of their size on the way back.
// Here the backward pass forms softmax minus one-hot from the logits, which it keeps anyhow. Half-precision
// logits are widened to float32 a few rows at a time, and the loss is float32.
#ifndef PLAIT_MODELS_CROSS_ENTROPY_H_
#define PLAIT_MODELS_CROSS_ENTROPY_H_

#include <ATen/core/Tensor.h>

namespace plait::models {

// A scalar: mean over all rows of -log softmax(logits)[target]; float64 for float64 logits, float32 for
// others. Targets are in [0, classes), of at least one row. Recorded by autograd, once differentiable.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace plait::models

#endif  // PLAIT_MODELS_CROSS_ENTROPY_H_
