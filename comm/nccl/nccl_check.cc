#include "comm/nccl/nccl_check.h"

#include "absl/strings/str_cat.h"
#include "comm/transport_error.h"

namespace plait::comm {

void CheckCuda(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw TransportError(absl::StrCat(call, ": ", cudaGetErrorString(result)));
}

void CheckNccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw TransportError(absl::StrCat(call, ": ", ncclGetErrorString(result), "; ", ncclGetLastError(nullptr)));
}

DeviceScope::DeviceScope(int device) {
  CheckCuda(cudaGetDevice(&before_), "cudaGetDevice");
  CheckCuda(cudaSetDevice(device), "cudaSetDevice");
}
DeviceScope::~DeviceScope() { cudaSetDevice(before_); }

DeviceScratch::DeviceScratch(std::int64_t bytes, cudaStream_t stream) : stream_(stream) {
  if (bytes > 0) CheckCuda(cudaMallocAsync(&data_, bytes, stream), "cudaMallocAsync");
}
DeviceScratch::~DeviceScratch() {
  if (data_ != nullptr) cudaFreeAsync(data_, stream_);
}

}  // namespace plait::comm
