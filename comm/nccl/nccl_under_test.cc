// The conformance suite on one CUDA device, as a group of one.
#include <cuda_runtime_api.h>

#include "comm/group.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/nccl/nccl_check.h"
#include "comm/self_backend.h"
#include "comm/testing/backend_under_test.h"

namespace plait::comm::testing {
namespace {

class CudaMemory : public Memory {
 public:
  Device device() const override { return Device::kCuda; }
  void* Allocate(std::int64_t bytes) override {
    void* data = nullptr;
    CheckCuda(cudaMalloc(&data, bytes), "cudaMalloc");
    return data;
  }
  void Free(void* data) override { cudaFree(data); }
  void CopyIn(void* to, const void* from, std::int64_t bytes) override {
    CheckCuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void CopyOut(void* to, const void* from, std::int64_t bytes) override {
    CheckCuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
};

Communicator OneDevice() {
  auto journal = std::make_shared<Journal>();
  journal->device_backend = NcclBackendFactory();
  return Communicator(MakeWorldGroup(MakeSelfBackend(), "nccl", std::move(journal))).OnCuda(0);
}

}  // namespace

const Subject& BackendUnderTest() {
  static CudaMemory memory;
  static const Subject subject{OneDevice(), memory};
  return subject;
}

}  // namespace plait::comm::testing
