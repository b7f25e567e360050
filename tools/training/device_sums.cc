#include "tools/training/device_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

namespace plait::training {

DeviceSums::DeviceSums(std::size_t count, at::Device device)
    : on_device_(
          at::zeros({static_cast<std::int64_t>(count)}, at::TensorOptions(at::kDouble).device(device))),
      on_host_(count) {}

void DeviceSums::Add(std::size_t sum, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  on_device_.select(0, static_cast<std::int64_t>(sum)).add_(value.detach().to(at::kDouble));
}

std::vector<double> DeviceSums::Read() const {
  const at::Tensor host = on_device_.cpu();
  const double* values = host.const_data_ptr<double>();
  std::vector<double> sums = on_host_;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  return sums;
}

}  // namespace plait::training
