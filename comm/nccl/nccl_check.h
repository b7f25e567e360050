// Errors of CUDA and NCCL calls as exceptions; RAII owners.
#ifndef PLAIT_COMM_NCCL_NCCL_CHECK_H_
#define PLAIT_COMM_NCCL_NCCL_CHECK_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>

namespace plait::comm {

// Throw TransportError with the library's own message.
void CheckCuda(cudaError_t result, const char* call);
void CheckNccl(ncclResult_t result, const char* call);

// Makes `device` current until the scope ends.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
};

// A point in a stream's work. With a blocking wait of the host on one of two streams, or Delay, the other is ordered with it.
class DeviceEvent {
 public:
  DeviceEvent();
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  // Behind everything that has been enqueued on `stream`; null: on the legacy default stream.
  void Record(cudaStream_t stream);
  // What is enqueued on `stream` from now on waits for the event.
  void Delay(cudaStream_t stream) const;
  // Whether the device has reached it.
  bool Reached() const;

 private:
  cudaEvent_t event_ = nullptr;
};

// Stream-ordered device memory (cudaMallocAsync, cudaFreeAsync).
class DeviceScratch {
 public:
  DeviceScratch(std::int64_t bytes, cudaStream_t stream);
  ~DeviceScratch();
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_NCCL_NCCL_CHECK_H_
