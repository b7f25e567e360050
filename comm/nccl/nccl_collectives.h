// Translates a request into NCCL calls on a stream. Private to comm/nccl.
#ifndef PLAIT_COMM_NCCL_NCCL_COLLECTIVES_H_
#define PLAIT_COMM_NCCL_NCCL_COLLECTIVES_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "comm/operation.h"

namespace plait::comm {

struct NcclGroup {
  ncclComm_t comm;
  cudaStream_t stream;
  int rank;
  int size;
};

// Enqueues a collective; nothing is complete when this returns.
void EnqueueOperation(const NcclGroup& group, const Request& request);

}  // namespace plait::comm

#endif  // PLAIT_COMM_NCCL_NCCL_COLLECTIVES_H_
