// Work on a device, recorded once as a CUDA graph and replayed without its launches.
#ifndef PLAIT_TESTS_BENCHMARKS_CAPTURED_WORK_H_
#define PLAIT_TESTS_BENCHMARKS_CAPTURED_WORK_H_

#include <ATen/core/Tensor.h>

#include <functional>

namespace plait::benchmarks {

// Replays `work`, which must not wait for the device, and keeps its tensors alive. Empty where the build has no CUDA or
// `device` is none.
std::function<void()> Capture(at::Device device, const std::function<void()>& work);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_CAPTURED_WORK_H_
