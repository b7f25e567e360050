#include "tools/device/cuda_library.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace plait::device {

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

}  // namespace plait::device
