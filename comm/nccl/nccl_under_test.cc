// The conformance suite on CUDA devices, one a rank.
#include <cuda_runtime_api.h>

#include "comm/group.h"
#include "comm/launch/launcher.h"
#include "comm/mpi/mpi_backend.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/nccl/nccl_check.h"
#include "comm/self_backend.h"
#include "comm/testing/backend_under_test.h"
#include "comm/testing/world.h"

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

std::unique_ptr<Backend> HostBackend() {
  return World().size() == 1 ? MakeSelfBackend() : MakeMpiWorldBackend({});
}

// Ranks that share a node take its devices in turn.
int DeviceOfRank() {
  int devices = 0;
  CheckCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  return DetectLauncher().local_rank % devices;
}

Communicator OnDevices() {
  auto journal = std::make_shared<Journal>();
  journal->device_backend = NcclBackendFactory();
  const int device = DeviceOfRank();
  CheckCuda(cudaSetDevice(device), "cudaSetDevice");
  return Communicator(MakeWorldGroup(HostBackend(), "nccl", std::move(journal))).OnCuda(device);
}

}  // namespace

const Subject& BackendUnderTest() {
  static CudaMemory memory;
  static const Subject subject{OnDevices(), memory};
  return subject;
}

}  // namespace plait::comm::testing
