// Communicators between CUDA devices over NCCL.
//
//   comm::SessionOptions options = {.device_backend = comm::NcclBackendFactory()};
//
// Where the build found no CUDA the factory is empty, and tensors on devices go through host memory.
//
// Stream semantics: operations run on a stream of their own that is ordered after, and before, the work of
// CUDA's default stream; work on other streams is for the caller to order. A blocking call returns when the
// operation is complete on the device. Differences from the transport on the host: messages between two ranks
// arrive in the order in which they were sent, whatever their tags; half precision is reduced by NCCL in its
// own type (the tensor collectives widen it to float32 first); a rank cannot send to itself.
#ifndef PLAIT_COMM_NCCL_NCCL_BACKEND_H_
#define PLAIT_COMM_NCCL_NCCL_BACKEND_H_

#include <functional>
#include <memory>

#include "comm/backend.h"

namespace plait::comm {

DeviceBackendFactory NcclBackendFactory();

}  // namespace plait::comm

#endif  // PLAIT_COMM_NCCL_NCCL_BACKEND_H_
