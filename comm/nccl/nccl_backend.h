// The NCCL backend: communicators between CUDA devices.
//
//   comm::SessionOptions options = {.device_backend = comm::NcclBackendFactory()};
//
// If the build found no CUDA the factory is empty, and CUDA tensors are copied through host memory.
//
// Stream semantics: an operation runs on a stream of its communicator, behind what the legacy default stream had when it was
// started; the caller must order work on other streams. It runs beside later work of the default stream. A call that
// waits returns when the operation is complete on the device. Messages between two ranks go through pinned host memory and
// the host's transport (host_messages.h). Differences from the MPI backend: half precision is reduced by NCCL in
// its own type (the tensor collectives widen it to float32 first); calls are not compared between ranks.
#ifndef PLAIT_COMM_NCCL_NCCL_BACKEND_H_
#define PLAIT_COMM_NCCL_NCCL_BACKEND_H_

#include <functional>
#include <memory>

#include "comm/backend.h"

namespace plait::comm {

DeviceBackendFactory NcclBackendFactory();

}  // namespace plait::comm

#endif  // PLAIT_COMM_NCCL_NCCL_BACKEND_H_
