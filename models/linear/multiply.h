// Products of tensors by the kernels of kernels/. Private to models/linear and models/gpt.
#ifndef PLAIT_MODELS_LINEAR_MULTIPLY_H_
#define PLAIT_MODELS_LINEAR_MULTIPLY_H_

#include <ATen/core/Tensor.h>

namespace plait::linear {

// Whether this processor has kernels for tensors like this one: dense, float32 or bfloat16, on a processor.
bool HasOwnProducts(const at::Tensor& tensor);

struct Addends {
  at::Tensor bias;      // (columns), or undefined
  at::Tensor residual;  // (rows, columns), or undefined
};

// out = left right + bias + residual; left (rows, inner), right (inner, columns), all of one type for which
// HasOwnProducts. Operands with no stride of one are copied. Records no gradient.
at::Tensor Multiply(const at::Tensor& left, const at::Tensor& right, const Addends& addends = {});

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_MULTIPLY_H_
