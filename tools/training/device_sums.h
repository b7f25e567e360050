// Accumulates numbers computed on a device there, in float64, and reads the sums once.
//
//   DeviceSums sums(2, run.device);
//   for (...) {
//     const models::LossSum loss = model.Loss(batch);
//     sums.Add(0, loss.sum);      // does not wait for the device
//     sums.Add(1, loss.count);
//   }
//   const std::vector<double> totals = sums.Read();   // waits
//
// A sum takes tensors and host integers; on CPU it is bitwise identical to summing doubles. Exact sums
// (base/exact_sum.h) are bitwise independent of the order of additions and of the number of ranks, but synchronize with
// the device at each addition. Local, except Total.
#ifndef PLAIT_TOOLS_TRAINING_DEVICE_SUMS_H_
#define PLAIT_TOOLS_TRAINING_DEVICE_SUMS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/exact_sum.h"
#include "comm/communicator.h"

namespace plait::training {

class DeviceSums {
 public:
  DeviceSums(std::size_t count, at::Device device, bool exact = false);

  // `value`: one element of any type, on the device. It is detached from autograd.
  void Add(std::size_t sum, const at::Tensor& value);
  void Add(std::size_t sum, std::int64_t value) { on_host_[sum] += static_cast<double>(value); }

  std::vector<double> Read() const;
  // Collective over `ranks`: the sums over all of them.
  std::vector<double> Total(const comm::Communicator& ranks) const;

 private:
  at::Tensor on_device_;  // (count), float64
  std::vector<double> on_host_;
  std::vector<base::ExactSum> exact_;  // empty: not exact
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_DEVICE_SUMS_H_
