// Functions of each element whose bits do not depend on where the element is in its tensor. LibTorch's own
// are computed by vector instructions, but those of the last few elements by other functions, so that a
// token's experts would depend on how many tokens its rank has. Recorded by autograd. Private to gate.h.
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
