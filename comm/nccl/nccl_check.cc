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

DeviceEvent::DeviceEvent() {
  CheckCuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}
DeviceEvent::~DeviceEvent() { cudaEventDestroy(event_); }
void DeviceEvent::Record(cudaStream_t stream) {
  CheckCuda(cudaEventRecord(event_, stream), "cudaEventRecord");
}
void DeviceEvent::Delay(cudaStream_t stream) const {
  CheckCuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
}
bool DeviceEvent::Reached() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state != cudaErrorNotReady) CheckCuda(state, "cudaEventQuery");
  return state == cudaSuccess;
}

DeviceScratch::DeviceScratch(std::int64_t bytes, cudaStream_t stream) : stream_(stream) {
  if (bytes > 0) CheckCuda(cudaMallocAsync(&data_, bytes, stream), "cudaMallocAsync");
}
DeviceScratch::~DeviceScratch() {
  if (data_ != nullptr) cudaFreeAsync(data_, stream_);
}

}  // namespace plait::comm
