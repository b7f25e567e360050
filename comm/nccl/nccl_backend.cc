#include "comm/nccl/nccl_backend.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <time.h>

#include <utility>
#include <vector>

#include "comm/nccl/host_messages.h"
#include "comm/nccl/nccl_check.h"
#include "comm/nccl/nccl_collectives.h"
#include "comm/self_backend.h"

namespace plait::comm {
namespace {

// Complete when the device has reached an event recorded after the operation.
class NcclWork : public PendingWork {
 public:
  NcclWork(const NcclGroup& group, std::shared_ptr<HostMessages> messages)
      : comm_(group.comm), messages_(std::move(messages)) {
    done_.Record(group.stream);
  }

  // Advances messages, too: the other ranks may have to receive one of this rank before they come to the operation.
  bool Test() override {
    if (done_.Reached()) return true;
    messages_->Advance();
    ncclResult_t error = ncclSuccess;
    CheckNccl(ncclCommGetAsyncError(comm_, &error), "ncclCommGetAsyncError");
    CheckNccl(error, "NCCL");
    return false;
  }
  // Polls instead of blocking: if a peer is gone the event is never reached, and only the asynchronous error shows it.
  void Wait() override {
    for (int polls = 0; !Test(); ++polls) {
      const timespec pause = {0, 20'000};
      if (polls > 1000) nanosleep(&pause, nullptr);
    }
  }

 private:
  ncclComm_t comm_;
  std::shared_ptr<HostMessages> messages_;
  DeviceEvent done_;
};

class NcclBackend : public Backend {
 public:
  NcclBackend(ncclComm_t comm, std::shared_ptr<HostMessages> messages, std::vector<int> members, int rank,
              int device_index)
      : messages_(std::move(messages)), members_(std::move(members)), device_index_(device_index) {
    group_ = {.comm = comm, .stream = nullptr, .rank = rank, .size = static_cast<int>(members_.size())};
    // Not blocking: the default stream's work would wait for the operation, which may wait for that work on another rank.
    CheckCuda(cudaStreamCreateWithFlags(&group_.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  // Handles are kept until the process ends: destroying a communicator waits for the other ranks.
  ~NcclBackend() override = default;

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  Device device() const override { return Device::kCuda; }
  std::vector<int> members() const override { return members_; }

  void Run(const Request& request) override { Start(request)->Wait(); }

  std::unique_ptr<PendingWork> Start(const Request& request) override {
    if (IsPointToPoint(request.operation)) return messages_->Start(request);
    const DeviceScope device(device_index_);
    // The default stream is where LibTorch works unless told otherwise.
    DeviceEvent before;
    before.Record(/*stream=*/nullptr);
    before.Delay(group_.stream);
    EnqueueOperation(group_, request);
    return std::make_unique<NcclWork>(group_, messages_);
  }
  void Advance() override { messages_->Advance(); }

  std::unique_ptr<Backend> Split(int color, int key) override {
    const DeviceScope device(device_index_);
    // First, as in MakeNcclBackend.
    std::shared_ptr<HostMessages> messages = messages_->Split(color, key);
    ncclComm_t part = nullptr;
    CheckNccl(ncclCommSplit(group_.comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part, nullptr),
              "ncclCommSplit");
    if (part == nullptr) return nullptr;
    int rank = 0, size = 0;
    CheckNccl(ncclCommUserRank(part, &rank), "ncclCommUserRank");
    CheckNccl(ncclCommCount(part, &size), "ncclCommCount");
    return std::make_unique<NcclBackend>(part, std::move(messages), MembersOf(part, rank, size), rank,
                                         device_index_);
  }

 private:
  // World ranks, exchanged over the new communicator.
  std::vector<int> MembersOf(ncclComm_t part, int rank, int size) const {
    const std::int64_t bytes = sizeof(int);
    const DeviceScratch scratch(bytes * size, group_.stream);
    int* data = static_cast<int*>(scratch.data());
    std::vector<int> members(size);
    CheckCuda(
        cudaMemcpyAsync(data + rank, &members_[group_.rank], bytes, cudaMemcpyHostToDevice, group_.stream),
        "cudaMemcpyAsync");
    CheckNccl(ncclAllGather(data + rank, data, 1, ncclInt32, part, group_.stream), "ncclAllGather");
    CheckCuda(cudaMemcpyAsync(members.data(), data, bytes * size, cudaMemcpyDeviceToHost, group_.stream),
              "cudaMemcpyAsync");
    CheckCuda(cudaStreamSynchronize(group_.stream), "cudaStreamSynchronize");
    return members;
  }

  NcclGroup group_;
  std::shared_ptr<HostMessages> messages_;
  std::vector<int> members_;
  int device_index_;
};

std::unique_ptr<Backend> MakeNcclBackend(Backend& host, int device_index) {
  const DeviceScope device(device_index);
  ncclUniqueId id{};
  if (host.rank() == 0) CheckNccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  Request share = {.operation = Operation::kBroadcast, .root = 0};
  share.out = {&id, sizeof id, DataType::kUInt8};
  host.Run(share);
  // ncclCommInitRank blocks without advancing operations on the host. After this split, which waits for all ranks and does
  // advance them, all are about to call it.
  auto messages = std::make_shared<HostMessages>(host.Split(/*color=*/0, host.rank()), device_index);
  ncclComm_t comm = nullptr;
  CheckNccl(ncclCommInitRank(&comm, host.size(), id, host.rank()), "ncclCommInitRank");
  return std::make_unique<NcclBackend>(comm, std::move(messages), host.members(), host.rank(), device_index);
}

}  // namespace

DeviceBackendFactory NcclBackendFactory() { return MakeNcclBackend; }

}  // namespace plait::comm
