// Sums of numbers that are computed on a device: added up there, in float64, and read once.
//
//   DeviceSums sums(2, run.device);
//   for (...) {
//     const models::LossSum loss = model.Loss(batch);
//     sums.Add(0, loss.sum);      // does not wait for the device
//     sums.Add(1, loss.count);
//   }
//   const std::vector<double> totals = sums.Read();   // waits
//
// A sum is of tensors or of numbers of the host; on CPU the same bits as adding up doubles. Exact sums have bits that
// depend neither on the order of additions nor on ranks, and wait for the device at each addition. Local, but Total.
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

  // `value`: one number of any type, on the device. Its graph is not kept.
  void Add(std::size_t sum, const at::Tensor& value);
  void Add(std::size_t sum, std::int64_t value) { on_host_[sum] += static_cast<double>(value); }

  std::vector<double> Read() const;
  // Collective: added up over the ranks.
  std::vector<double> Total(const comm::Communicator& ranks) const;

 private:
  at::Tensor on_device_;  // (count), float64
  std::vector<double> on_host_;
  std::vector<base::ExactSum> exact_;  // none: not exact
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_DEVICE_SUMS_H_
