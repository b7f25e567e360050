// Of builds without CUDA.
#include "tools/device/cuda_library.h"

namespace plait::device {

absl::Status LoadCudaLibrary(const std::string&) { return absl::NotFoundError("this build has no CUDA"); }

absl::Status LoadCudaLibraryIfUsable() { return absl::OkStatus(); }

std::vector<std::string> GpuIds(int) { return {}; }

}  // namespace plait::device
