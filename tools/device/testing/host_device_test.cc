#include "tools/device/testing/host_device.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "tools/device/device.h"

namespace plait::device::testing {
namespace {

TEST(HostDevice, ComputesWithTheHostsKernels) {
  const at::Device device = HostDevice();
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 2});
  const at::Tensor x = a.to(device).requires_grad_(true), y = b.to(device);
  EXPECT_EQ(x.device(), device);
  const at::Tensor out = at::mm(x, y).relu().sum();
  out.backward();
  const at::Tensor on_host = a.clone().requires_grad_(true);
  at::mm(on_host, b).relu().sum().backward();
  EXPECT_EQ(out.device(), device);
  EXPECT_EQ(x.grad().device(), device);
  EXPECT_TRUE(x.grad().cpu().equal(on_host.grad()));
  EXPECT_TRUE(x.t().narrow(0, 1, 2).contiguous().cpu().equal(a.t().narrow(0, 1, 2)));
}

TEST(HostDevice, RefusesTensorsOfTheHost) {
  const at::Tensor x = at::ones({3}, HostDevice());
  EXPECT_THROW(x + at::ones({3}), c10::Error);
  EXPECT_EQ((x + at::ones({})).sum().item<double>(), 6);
}

TEST(HostDevice, CountsWhatAProgramWouldWaitFor) {
  DeviceTraffic& traffic = TrafficOfHostDevice();
  const at::Tensor host = at::ones({3});
  traffic.Reset();
  const at::Tensor x = host.to(HostDevice());
  EXPECT_EQ(traffic.pageable, 1);
  host.pin_memory().to(x.options(), /*non_blocking=*/true);
  EXPECT_EQ(traffic.pinned, 1);
  const at::Tensor sum = (x * 2).sum();
  EXPECT_EQ(traffic.to_host, 0);
  EXPECT_EQ(sum.item<double>(), 6);
  x.cpu();
  EXPECT_EQ(traffic.to_host, 2);
}

TEST(SecondsWhenDone, WaitsForADeviceThatIsNotTheProcessor) {
  DeviceTraffic& traffic = TrafficOfHostDevice();
  traffic.Reset();
  const double before = SecondsWhenDone(at::kCPU);
  EXPECT_EQ(traffic.synchronized, 0);
  EXPECT_GE(SecondsWhenDone(HostDevice()), before);
  EXPECT_EQ(traffic.synchronized, 1);
}

}  // namespace
}  // namespace plait::device::testing
