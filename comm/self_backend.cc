#include "comm/self_backend.h"

#include <cstring>
#include <deque>
#include <map>

#include "comm/call_fingerprint.h"
#include "comm/transport_error.h"

namespace plait::comm {
namespace {

struct Message {
  MessageHeader header;
  std::vector<std::byte> bytes;
};
using Mailbox = std::map<int, std::deque<Message>>;  // by tag

bool TryReceive(Mailbox& mailbox, const Request& request) {
  const auto box = mailbox.find(request.tag);
  if (box == mailbox.end() || box->second.empty()) return false;
  const Message message = std::move(box->second.front());
  box->second.pop_front();
  CheckSameMessage(message.header, /*from=*/0, {request.out.count, request.out.type});
  if (!message.bytes.empty()) std::memcpy(request.out.data, message.bytes.data(), message.bytes.size());
  return true;
}

class CompleteWork : public PendingWork {
 public:
  bool Test() override { return true; }
  void Wait() override {}
};

class PendingReceive : public PendingWork {
 public:
  PendingReceive(std::shared_ptr<Mailbox> mailbox, Request request)
      : mailbox_(std::move(mailbox)), request_(std::move(request)) {}
  bool Test() override { return done_ = done_ || TryReceive(*mailbox_, request_); }
  void Wait() override {
    if (!Test()) throw TransportError("receive in a group of one: nothing was sent with this tag");
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  Request request_;
  bool done_ = false;
};

class SelfBackend : public Backend {
 public:
  explicit SelfBackend(int world_rank) : world_rank_(world_rank), mailbox_(std::make_shared<Mailbox>()) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<int> members() const override { return {world_rank_}; }

  void Run(const Request& request) override { Start(request)->Wait(); }

  std::unique_ptr<PendingWork> Start(const Request& request) override {
    switch (request.operation) {
      case Operation::kReceive:
        return std::make_unique<PendingReceive>(mailbox_, request);
      case Operation::kSend:
        Keep(request);
        break;
      default:
        Copy(request);
    }
    return std::make_unique<CompleteWork>();
  }

  std::unique_ptr<Backend> Split(int color, int) override {
    return color < 0 ? nullptr : MakeSelfBackend(world_rank_);
  }

 private:
  void Keep(const Request& request) {
    const auto* begin = static_cast<const std::byte*>(request.in.data);
    (*mailbox_)[request.tag].push_back(
        {{request.in.count, request.in.type}, {begin, begin + request.in.bytes()}});
  }
  static void Copy(const Request& request) {
    if (request.in.count > 0 && request.in.data != request.out.data) {
      std::memmove(request.out.data, request.in.data, request.in.bytes());
    }
  }

  int world_rank_;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace

std::unique_ptr<Backend> MakeSelfBackend(int world_rank) { return std::make_unique<SelfBackend>(world_rank); }

}  // namespace plait::comm
