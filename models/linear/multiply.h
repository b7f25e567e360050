// Products of tensors by the kernels of kernels/. Private to models/linear.
#ifndef PLAIT_MODELS_LINEAR_MULTIPLY_H_
#define PLAIT_MODELS_LINEAR_MULTIPLY_H_

#include <ATen/core/Tensor.h>

namespace plait::linear {

// Whether this CPU has kernels for `tensor`: strided, float32 or bfloat16, on the CPU or the meta device.
bool HasOwnProducts(const at::Tensor& tensor);

struct Addends {
  at::Tensor bias;      // (columns), or undefined
  at::Tensor residual;  // (rows, columns), or undefined
};

// out = left right + bias + residual; left (rows, inner), right (inner, columns), all of one dtype for which
// HasOwnProducts() is true. Operands without a stride of 1 are copied. Not recorded by autograd.
at::Tensor Multiply(const at::Tensor& left, const at::Tensor& right, const Addends& addends = {});

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_MULTIPLY_H_
