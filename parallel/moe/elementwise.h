// Element-wise functions whose bits do not depend on the element's position in its tensor. LibTorch's vectorized
// kernels compute the last few elements with other code, so that a token's experts would depend on how many tokens its
// rank has. Recorded by autograd. Private to gate.h.
#ifndef PLAIT_PARALLEL_MOE_ELEMENTWISE_H_
#define PLAIT_PARALLEL_MOE_ELEMENTWISE_H_

#include <ATen/core/Tensor.h>

namespace plait::moe {

// float32 or float64.
at::Tensor Sigmoid(const at::Tensor& x);
at::Tensor Softplus(const at::Tensor& x);   // log(1 + exp(x))
at::Tensor NormalCdf(const at::Tensor& x);  // of mean 0 and variance 1

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_ELEMENTWISE_H_
