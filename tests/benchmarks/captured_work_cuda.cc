#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>

#include "tests/benchmarks/captured_work.h"

namespace plait::benchmarks {

std::function<void()> Capture(at::Device device, const std::function<void()>& work) {
  if (!device.is_cuda()) return nullptr;
  const auto graph = std::make_shared<at::cuda::CUDAGraph>();
  // A capture needs a stream of its own, and libraries that have set themselves up there.
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  const c10::cuda::CUDAStreamGuard on_stream(stream);
  work();
  stream.synchronize();
  graph->capture_begin();
  work();
  graph->capture_end();
  return [graph] { graph->replay(); };
}

}  // namespace plait::benchmarks
