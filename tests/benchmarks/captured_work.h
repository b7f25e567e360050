// Work on a device, recorded once as a CUDA graph and replayed without its launches.
#ifndef PLAIT_TESTS_BENCHMARKS_CAPTURED_WORK_H_
#define PLAIT_TESTS_BENCHMARKS_CAPTURED_WORK_H_

#include <ATen/core/Tensor.h>

#include <functional>

namespace plait::benchmarks {

// Records `work`, which must not synchronize with the device, and returns a function that replays it and keeps its
// tensors alive. An empty function if the build has no CUDA or `device` is not a CUDA device.
std::function<void()> Capture(at::Device device, const std::function<void()>& work);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_CAPTURED_WORK_H_
