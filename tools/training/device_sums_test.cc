#include "tools/training/device_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tools/device/testing/host_device.h"

namespace plait::training {
namespace {

// Fractions of float32 added up in float32 would be off by 1e-5; in double these sums are exact.
TEST(DeviceSums, AddsUpInFloat64AndReadsOnce) {
  device::testing::DeviceTraffic& traffic = device::testing::TrafficOfHostDevice();
  for (const at::Device device : {at::Device(at::kCPU), device::testing::HostDevice()}) {
    traffic.Reset();
    DeviceSums sums(3, device);
    double expected = 0;
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < 5000; ++k) {
      const float loss = 1.0f + 0x1p-20f * static_cast<float>(k);
      sums.Add(0, at::full({}, loss, at::TensorOptions(at::kFloat).device(device)));
      sums.Add(2, at::full({}, k % 3, at::TensorOptions(at::kLong).device(device)));
      sums.Add(1, k);
      expected += static_cast<double>(loss);
      count += k % 3;
    }
    EXPECT_EQ(traffic.to_host, 0);
    EXPECT_EQ(sums.Read(), (std::vector<double>{expected, 4999 * 2500, static_cast<double>(count)}));
    EXPECT_EQ(traffic.to_host, device.is_cpu() ? 0 : 1);
  }
}

TEST(DeviceSums, ExactSumsHaveNoOrder) {
  DeviceSums sums(2, at::kCPU, /*exact=*/true);
  for (const double term : {1e20, 1.0, 0x1p-40, -1e20}) sums.Add(0, at::full({}, term, at::kDouble));
  sums.Add(1, std::int64_t{3});
  EXPECT_EQ(sums.Read(), (std::vector<double>{1 + 0x1p-40, 3}));
  EXPECT_EQ(sums.Total(comm::Communicator::Self()), sums.Read());
}

TEST(DeviceSums, KeepsNoGraph) {
  const at::Tensor x = at::full({}, 3.0).requires_grad_(true);
  DeviceSums sums(1, at::kCPU);
  sums.Add(0, x * x);
  (x * x).backward();  // not refused
  EXPECT_EQ(sums.Read()[0], 9);
}

}  // namespace
}  // namespace plait::training
