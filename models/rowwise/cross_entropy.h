// Cross entropies of rows of logits, with two passes over a row forward and one backward, for custom autograd functions
// (models/cross_entropy.h).
//
//   logits    (rows, classes), contiguous, with HasCrossEntropyRows(logits)
//   targets   (rows) of int64, contiguous; outside 0 to classes - 1: throws c10::IndexError
//   losses    (rows) of float32: log(sum of exp(logits)) - the target's logit
//   moments   (2, rows) of float32, written for the backward pass
//   returned  as logits: scale * (softmax(logits) - onehot(target))
//
// Computed in float32, results rounded once, on at::get_num_threads() threads; a row's result is bitwise identical in
// any batch. A NaN in a row makes its loss NaN. Not recorded by autograd. Local.
#ifndef PLAIT_MODELS_ROWWISE_CROSS_ENTROPY_H_
#define PLAIT_MODELS_ROWWISE_CROSS_ENTROPY_H_

#include <ATen/core/Tensor.h>

namespace plait::rowwise {

// Whether this CPU has kernels for `logits`, float32 or bfloat16.
bool HasCrossEntropyRows(const at::Tensor& logits);

void CrossEntropyRows(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& losses,
                      const at::Tensor& moments);
at::Tensor CrossEntropyRowsGradient(const at::Tensor& logits, const at::Tensor& targets,
                                    const at::Tensor& moments, double scale);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_CROSS_ENTROPY_H_
