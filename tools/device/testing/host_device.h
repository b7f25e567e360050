// A device whose memory is the host's, for tests of what must work on GPUs on machines without one.
//
//   const at::Device device = testing::HostDevice();      // registers it
//   at::Tensor x = at::ones({3}, device);                 // LibTorch's operators, computed by their CPU kernels
//   testing::TrafficOfHostDevice().Reset();
//   x.sum().item<double>();
//   EXPECT_EQ(testing::TrafficOfHostDevice().to_host, 1);
//
// It is LibTorch's PrivateUse1, and as strict as CUDA: an operator that gets tensors of the host and of the
// device throws c10::Error (scalars of the host may be mixed in), and its part of a backward pass runs on a
// thread of its own. Programs that link it only.
#ifndef PLAIT_TOOLS_DEVICE_TESTING_HOST_DEVICE_H_
#define PLAIT_TOOLS_DEVICE_TESTING_HOST_DEVICE_H_

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>

namespace plait::device::testing {

at::Device HostDevice();

// What a GPU's program would wait for, and pinned memory, since the last Reset.
struct DeviceTraffic {
  std::atomic<std::int64_t> to_host = 0;       // copies and single numbers from the device to the host
  std::atomic<std::int64_t> pageable = 0;      // copies to the device that wait: not from pinned memory
  std::atomic<std::int64_t> pinned = 0;        // copies to the device that do not
  std::atomic<std::int64_t> synchronized = 0;  // waits for all that the device was given
  void Reset() { to_host = pageable = pinned = synchronized = 0; }
};
DeviceTraffic& TrafficOfHostDevice();

}  // namespace plait::device::testing

#endif  // PLAIT_TOOLS_DEVICE_TESTING_HOST_DEVICE_H_
