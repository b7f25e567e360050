// Whether own kernels can run on a tensor, and with which element type. Private to models/rowwise.
#ifndef PLAIT_MODELS_ROWWISE_OWN_KERNELS_H_
#define PLAIT_MODELS_ROWWISE_OWN_KERNELS_H_

#include <ATen/core/Tensor.h>

#include "models/rowwise/kernels/row_functions.h"

namespace plait::rowwise {

inline bool HasOwnKernels(const at::Tensor& x) {
  if (!(x.is_cpu() || x.is_meta()) || x.layout() != at::kStrided) return false;
  if (x.scalar_type() == at::kFloat) return UsableRows<float>() != nullptr;
  return x.scalar_type() == at::kBFloat16 && UsableRows<BFloat16>() != nullptr;
}

// Calls run(T{}) with the kernels' element type; does nothing on the meta device.
template <typename Run>
void WithType(const at::Tensor& tensor, const Run& run) {
  if (tensor.is_meta()) return;
  tensor.scalar_type() == at::kFloat ? run(float{}) : run(BFloat16{});
}

template <typename T>
const T* DataOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.const_data_ptr()) : nullptr;
}

template <typename T>
T* MutableDataOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_OWN_KERNELS_H_
