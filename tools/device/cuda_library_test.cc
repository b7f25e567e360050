// LibTorch's CUDA library is there when it is loaded, also on a machine without a GPU. Each test has a process of its own, for
// LibTorch looks for its CUDA hooks once.
#include "tools/device/cuda_library.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace plait::device {
namespace {

using ::testing::HasSubstr;

// NOLINTNEXTLINE(misc-use-internal-linkage)
bool IsLoaded() { return dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD) != nullptr; }

// Exit code 0 where `passes`; its own process, and so its own LibTorch.
template <typename Function>
void ExpectInProcess(const Function& passes) {
  EXPECT_EXIT(std::_Exit(passes() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(CudaLibraryDeathTest, IsNotLinked) {
  ExpectInProcess([] { return !IsLoaded() && !at::detail::getCUDAHooks().hasCUDART(); });
}

TEST(CudaLibraryDeathTest, BringsHooksAndDevices) {
  ExpectInProcess([] {
    return LoadCudaLibrary().ok() && LoadCudaLibrary().ok() && IsLoaded() &&
           at::detail::getCUDAHooks().hasCUDART() && c10::impl::hasDeviceGuardImpl(c10::kCUDA);
  });
}

TEST(CudaLibraryDeathTest, IsRefusedWhereLibTorchHasLooked) {
  ExpectInProcess([] {
    return at::detail::getCUDAHooks().deviceCount() == 0 &&
           LoadCudaLibrary().code() == absl::StatusCode::kFailedPrecondition;
  });
}

TEST(CudaLibraryDeathTest, AMissingLibraryIsNamed) {
  const absl::Status status = LoadCudaLibrary("libnone_cuda.so");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libnone_cuda.so"));
}

// A machine without a GPU pays for none.
TEST(CudaLibraryDeathTest, IsLoadedWhereTheDriverIs) {
  ExpectInProcess([] {
    const bool driver = dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;
    return LoadCudaLibraryIfUsable().ok() && IsLoaded() == driver;
  });
}

}  // namespace
}  // namespace plait::device
