#include "comm/nccl/host_messages.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "comm/nccl/nccl_check.h"

namespace plait::comm {
namespace {

std::int64_t SizeOfBlock(std::int64_t bytes) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1))));
}

}  // namespace

// In flight on the host; a receive is complete once its values are in device memory.
class HostMessages::Message : public PendingWork {
 public:
  Message(std::shared_ptr<HostMessages> messages, const Request& request)
      : messages_(std::move(messages)),
        request_(request),
        bytes_(Payload(request).bytes()),
        memory_(messages_->Take(bytes_)) {
    Request on_host = request;
    if (request.operation == Operation::kSend) {
      CopyAfterDefaultStream(memory_, request.in.data, cudaMemcpyDeviceToHost);
      on_host.in = {memory_, request.in.count, request.in.type};
    } else {
      received_into_.Record(/*stream=*/nullptr);
      on_host.out = {memory_, request.out.count, request.out.type};
    }
    work_ = messages_->host_->Start(on_host);
  }
  ~Message() override { messages_->Return(bytes_, memory_); }

  bool Test() override {
    if (work_ == nullptr) return true;
    if (!work_->Test()) return false;
    Finish();
    return true;
  }
  void Wait() override {
    if (work_ == nullptr) return;
    work_->Wait();
    Finish();
  }

 private:
  void CopyAfterDefaultStream(void* to, const void* from, cudaMemcpyKind kind) {
    DeviceEvent before;
    before.Record(/*stream=*/nullptr);
    Copy(before, to, from, kind);
  }
  void Copy(const DeviceEvent& after, void* to, const void* from, cudaMemcpyKind kind) {
    if (bytes_ == 0) return;
    after.Delay(messages_->stream_);
    CheckCuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes_), kind, messages_->stream_),
              "cudaMemcpyAsync");
    CheckCuda(cudaStreamSynchronize(messages_->stream_), "cudaStreamSynchronize");
  }
  void Finish() {
    work_.reset();
    const DeviceScope device(messages_->device_index_);
    if (request_.operation == Operation::kReceive) {
      Copy(received_into_, request_.out.data, memory_, cudaMemcpyHostToDevice);
    }
  }

  std::shared_ptr<HostMessages> messages_;
  Request request_;
  std::int64_t bytes_;
  void* memory_;
  // What was enqueued before the receive may still read the buffer's memory under another name.
  DeviceEvent received_into_;
  std::unique_ptr<PendingWork> work_;
};

HostMessages::HostMessages(std::unique_ptr<Backend> host, int device_index)
    : host_(std::move(host)), device_index_(device_index) {
  const DeviceScope device(device_index_);
  CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

std::unique_ptr<PendingWork> HostMessages::Start(const Request& request) {
  const DeviceScope device(device_index_);
  return std::make_unique<Message>(shared_from_this(), request);
}

std::shared_ptr<HostMessages> HostMessages::Split(int color, int key) {
  std::unique_ptr<Backend> part = host_->Split(color, key);
  return part == nullptr ? nullptr : std::make_shared<HostMessages>(std::move(part), device_index_);
}

void* HostMessages::Take(std::int64_t bytes) {
  std::vector<void*>& blocks = free_[SizeOfBlock(bytes)];
  void* memory = nullptr;
  if (blocks.empty()) {
    CheckCuda(cudaMallocHost(&memory, static_cast<std::size_t>(SizeOfBlock(bytes))), "cudaMallocHost");
  } else {
    memory = blocks.back();
    blocks.pop_back();
  }
  return memory;
}

void HostMessages::Return(std::int64_t bytes, void* memory) { free_[SizeOfBlock(bytes)].push_back(memory); }

}  // namespace plait::comm
