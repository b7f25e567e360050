// The NCCL backend: communicators between CUDA devices.
//
//   comm::SessionOptions options = {.device_backend = comm::NcclBackendFactory()};
//
// If the build found no CUDA the factory is empty, and CUDA tensors are copied through host memory.
//
// Stream semantics: operations run on a separate blocking stream, which is ordered with the legacy default stream in
// both directions; the caller must order work on other streams. A blocking call returns when the operation is complete
// on the device. Differences from the MPI backend: tags are ignored, messages between two ranks arrive in the order in
// which they were sent; half precision is reduced by NCCL in its own type (the tensor collectives widen it to float32
// first); a rank cannot send to itself; calls are not compared between ranks.
#ifndef PLAIT_COMM_NCCL_NCCL_BACKEND_H_
#define PLAIT_COMM_NCCL_NCCL_BACKEND_H_

#include <functional>
#include <memory>

#include "comm/backend.h"

namespace plait::comm {

DeviceBackendFactory NcclBackendFactory();

}  // namespace plait::comm

#endif  // PLAIT_COMM_NCCL_NCCL_BACKEND_H_
