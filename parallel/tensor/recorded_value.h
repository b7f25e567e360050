// A C++ value that an autograd function saves in its forward for its backward, besides tensors. Private to parallel/.
#ifndef PLAIT_PARALLEL_TENSOR_RECORDED_VALUE_H_
#define PLAIT_PARALLEL_TENSOR_RECORDED_VALUE_H_

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace plait::tensor_parallel {

template <typename T>
struct RecordedValue final : torch::CustomClassHolder {
  explicit RecordedValue(T v) : value(std::move(v)) {}
  T value;
};

template <typename T>
void Record(torch::autograd::AutogradContext& context, T value) {
  context.saved_data["recorded"] =
      c10::IValue::make_capsule(c10::make_intrusive<RecordedValue<T>>(std::move(value)));
}

// The value that Record saved; valid as long as `context`.
template <typename T>
T& Recorded(torch::autograd::AutogradContext& context) {
  return static_cast<RecordedValue<T>&>(*context.saved_data["recorded"].toCapsule()).value;
}

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_RECORDED_VALUE_H_
