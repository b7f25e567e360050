#include "tools/device/cuda_library.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace plait::device {
namespace {

// Functions of the driver, which return 0 where they succeed.
using Init = int (*)(unsigned flags);
using DeviceGet = int (*)(int* device, int index);
using DeviceGetUuid = int (*)(char* bytes, int device);
constexpr std::size_t kUuidBytes = 16;

}  // namespace

absl::Status LoadCudaLibrary(const std::string& library) {
  // Global: libraries that LibTorch loads later, of linear algebra say, refer to its symbols.
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return absl::NotFoundError(absl::StrCat("LibTorch's CUDA library was not loaded: ", dlerror()));
  }
  if (!at::detail::getCUDAHooks().hasCUDART()) {
    return absl::FailedPreconditionError(
        "LibTorch's CUDA library was loaded after LibTorch had looked for it; load it first in the program");
  }
  return absl::OkStatus();
}

absl::Status LoadCudaLibraryIfUsable() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return absl::OkStatus();
  dlclose(driver);
  return LoadCudaLibrary();
}

std::vector<std::string> GpuIds(int count) {
  void* driver = count > 0 ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) : nullptr;
  if (driver == nullptr) return {};
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<DeviceGet>(dlsym(driver, "cuDeviceGet"));
  const auto get_uuid = reinterpret_cast<DeviceGetUuid>(dlsym(driver, "cuDeviceGetUuid_v2"));
  if (init == nullptr || get == nullptr || get_uuid == nullptr || init(0) != 0) return {};
  std::vector<std::string> ids;
  for (int gpu = 0; gpu < count; ++gpu) {
    int device = 0;
    char uuid[kUuidBytes] = {};
    if (get(&device, gpu) != 0 || get_uuid(uuid, device) != 0) return {};
    ids.push_back(absl::BytesToHexString(absl::string_view(uuid, kUuidBytes)));
  }
  return ids;
}

}  // namespace plait::device
