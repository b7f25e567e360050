// Tensors as states of the solver: contiguous, of the same shape on all levels, on any device.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STATE_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STATE_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mgrit/state.h"

namespace plait::mgrit {

template <>
inline constexpr bool kTypeHasShape<at::Tensor> = false;

// Norms stay on the device of the states until Take, which makes one copy to the host.
class TensorNorms {
 public:
  void Put(std::int64_t slot, const at::Tensor& x);
  void Take(absl::Span<double> squares);

 private:
  std::vector<std::int64_t> slots_;  // put since the last Take
  std::vector<at::Tensor> views_;    // of single elements of norms_
  at::Tensor norms_;                 // float64
};

// None of these operations is recorded by autograd.
template <>
struct StateOperations<at::Tensor> {
  static void Copy(const at::Tensor& x, at::Tensor& y);
  static void Combine(double alpha, const at::Tensor& x, double beta, at::Tensor& y);
  // Accumulated in float64.
  static double NormSquared(const at::Tensor& x);
  using Norms = TensorNorms;
  static StateMemory Memory(at::Tensor& x);
  static std::int64_t PackedBytes(const at::Tensor& x);
  static void Pack(const at::Tensor& x, absl::Span<std::byte> bytes);
  static void Unpack(absl::Span<const std::byte> bytes, at::Tensor& x);
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STATE_H_
