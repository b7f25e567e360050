// Cross entropies of rows of logits, for custom autograd functions (models/cross_entropy.h): on CPUs with two passes over
// a row forward and one backward, on CUDA devices with one each.
//
//   logits    (rows, classes), contiguous, with HasCrossEntropyRows(logits)
//   targets   (rows) of int64, contiguous; outside 0 to classes - 1: throws c10::IndexError; on a CUDA device an assertion
//             of the kernel, as in LibTorch's
//   losses    (rows) of float32: log(sum of exp(logits)) - the target's logit
//   moments   (2, rows) of float32, written for the backward pass
//   scale     () of float32
//   returned  as logits: scale * (softmax(logits) - onehot(target))
//
// All on one device. Computed in float32, results rounded once, on at::get_num_threads() threads or in the device's current
// stream, without waiting for it; a row's result is bitwise identical in any batch. A NaN in a row makes its loss NaN. Not
// recorded by autograd. Local.
#ifndef PLAIT_MODELS_ROWWISE_CROSS_ENTROPY_H_
#define PLAIT_MODELS_ROWWISE_CROSS_ENTROPY_H_

#include <ATen/core/Tensor.h>

namespace plait::rowwise {

// Whether there are kernels for `logits`: on this CPU of float32 or bfloat16, on CUDA devices of float16, too.
bool HasCrossEntropyRows(const at::Tensor& logits);

void CrossEntropyRows(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& losses,
                      const at::Tensor& moments);
at::Tensor CrossEntropyRowsGradient(const at::Tensor& logits, const at::Tensor& targets,
                                    const at::Tensor& moments, const at::Tensor& scale);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_CROSS_ENTROPY_H_
