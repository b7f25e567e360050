#include "tools/training/device_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

namespace plait::training {

DeviceSums::DeviceSums(std::size_t count, at::Device device, bool exact)
    : on_device_(
          at::zeros({static_cast<std::int64_t>(count)}, at::TensorOptions(at::kDouble).device(device))),
      on_host_(count),
      exact_(exact ? count : 0) {}

void DeviceSums::Add(std::size_t sum, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  if (!exact_.empty()) return exact_[sum].Add(value.detach().to(at::kDouble).item<double>());
  on_device_.select(0, static_cast<std::int64_t>(sum)).add_(value.detach().to(at::kDouble));
}

std::vector<double> DeviceSums::Read() const {
  const at::Tensor host = on_device_.cpu();
  const double* values = host.const_data_ptr<double>();
  std::vector<double> sums = on_host_;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += exact_.empty() ? values[i] : exact_[i].Value();
  return sums;
}

std::vector<double> DeviceSums::Total(const comm::Communicator& ranks) const {
  if (exact_.empty()) {
    std::vector<double> totals = Read();
    ranks.AllReduce(comm::BufferOf(absl::MakeSpan(totals)));
    return totals;
  }
  std::vector<double> totals;
  for (std::size_t i = 0; i < exact_.size(); ++i) {
    base::ExactSum sum = exact_[i];
    sum.Add(on_host_[i]);  // an integer
    ranks.AllReduce(comm::BufferOf(sum.Limbs()));
    totals.push_back(sum.Value());
  }
  return totals;
}

}  // namespace plait::training
