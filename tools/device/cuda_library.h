// LibTorch's CUDA library, loaded where a GPU may be used. Linked into programs it would cost every process, on CPU too,
// 350 MB and 0.2 s of processor time.
#ifndef PLAIT_TOOLS_DEVICE_CUDA_LIBRARY_H_
#define PLAIT_TOOLS_DEVICE_CUDA_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::device {

// Loads `library`, LibTorch's for CUDA, with its operators and hooks, for the life of the process. OK also where it is
// loaded already. NOT_FOUND, naming the reason, where it cannot be loaded; FAILED_PRECONDITION where LibTorch has
// looked for CUDA before, since it looks once in a process: seeding its generators or asking it for devices does. Local.
absl::Status LoadCudaLibrary(const std::string& library = "libtorch_cuda.so");

// LoadCudaLibrary where the build has CUDA and the machine NVIDIA's driver, libcuda.so.1; OK where one is missing. Local.
absl::Status LoadCudaLibraryIfUsable();

// The UUIDs of the first `count` GPUs of this process, by index, from NVIDIA's driver; empty where it does not say. Local.
std::vector<std::string> GpuIds(int count);

}  // namespace plait::device

#endif  // PLAIT_TOOLS_DEVICE_CUDA_LIBRARY_H_
