// Messages between two ranks whose buffers are in device memory, through pinned host memory and the transport of the
// host. Private to comm/nccl.
//
// NCCL's own send and receive are kernels of a stream, without tags: a receive that waits for its message holds up
// everything behind it, so that a ring of ranks, each with a receive and then a send in flight, never ends. These
// messages have tags, may be started and awaited in any order, and are compared in size, as those of host memory.
#ifndef PLAIT_COMM_NCCL_HOST_MESSAGES_H_
#define PLAIT_COMM_NCCL_HOST_MESSAGES_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/backend.h"

namespace plait::comm {

class HostMessages : public std::enable_shared_from_this<HostMessages> {
 public:
  // `host`: for these messages alone. `device_index`: of the buffers.
  HostMessages(std::unique_ptr<Backend> host, int device_index);

  // kSend and kReceive. The send's values are copied before this returns, once work on the default stream is done.
  std::unique_ptr<PendingWork> Start(const Request& request);
  // Collective; null for a negative color.
  std::shared_ptr<HostMessages> Split(int color, int key);
  // Advances all operations of the session on the host, without blocking.
  void Advance() { host_->Advance(); }

 private:
  class Message;

  // Pinned memory of at least `bytes`, which Message returns: allocating it is slow.
  void* Take(std::int64_t bytes);
  void Return(std::int64_t bytes, void* memory);

  std::unique_ptr<Backend> host_;
  int device_index_;
  // Both are kept until the process ends, as NCCL's communicators are.
  cudaStream_t stream_ = nullptr;
  std::map<std::int64_t, std::vector<void*>> free_;  // by size, a power of two
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_NCCL_HOST_MESSAGES_H_
