// A device whose memory is the host's, for tests of what must work on GPUs on machines without one.
//
//   const at::Device device = testing::HostDevice();      // registers it
//   at::Tensor x = at::ones({3}, device);                 // LibTorch's operators, computed by their CPU kernels
//   testing::TrafficOfHostDevice().Reset();
//   x.sum().item<double>();
//   EXPECT_EQ(testing::TrafficOfHostDevice().to_host, 1);
//
// It is LibTorch's PrivateUse1, and as strict as CUDA: an operator whose arguments are on both host and device throws
// c10::Error (zero-dimensional host tensors are allowed), and backward runs on the device's own autograd thread.
// Registered only in programs that link this library.
#ifndef PLAIT_TOOLS_DEVICE_TESTING_HOST_DEVICE_H_
#define PLAIT_TOOLS_DEVICE_TESTING_HOST_DEVICE_H_

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>

namespace plait::device::testing {

at::Device HostDevice();

// Counts since the last Reset: calls for which a program on a GPU would wait, and asynchronous copies.
struct DeviceTraffic {
  std::atomic<std::int64_t> to_host = 0;       // copies and single numbers from the device to the host
  std::atomic<std::int64_t> pageable = 0;      // copies to the device without non_blocking
  std::atomic<std::int64_t> pinned = 0;        // copies to the device with non_blocking, from any memory
  std::atomic<std::int64_t> synchronized = 0;  // calls of synchronizeDevice
  void Reset() { to_host = pageable = pinned = synchronized = 0; }
};
DeviceTraffic& TrafficOfHostDevice();

}  // namespace plait::device::testing

#endif  // PLAIT_TOOLS_DEVICE_TESTING_HOST_DEVICE_H_
