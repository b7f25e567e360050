#include "comm/self_backend.h"

#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "comm/call_fingerprint.h"
#include "comm/transport_error.h"

namespace plait::comm {
namespace {

struct Message {
  MessageHeader header;
  std::vector<std::byte> bytes;
};

class PendingReceive;

// Of one tag. As between ranks, messages go to receives in the order in which these were started.
struct Box {
  std::deque<Message> messages;
  std::deque<PendingReceive*> receives;  // those that have no message yet
};
using Mailbox = std::map<int, Box>;  // by tag

class CompleteWork : public PendingWork {
 public:
  bool Test() override { return true; }
  void Wait() override {}
};

class PendingReceive : public PendingWork {
 public:
  PendingReceive(std::shared_ptr<Mailbox> mailbox, Request request)
      : mailbox_(std::move(mailbox)), request_(std::move(request)) {
    box().receives.push_back(this);
  }
  ~PendingReceive() override { std::erase(box().receives, this); }

  bool Test() override {
    if (done_) return true;
    Deliver(box());
    if (message_) Read(*std::exchange(message_, std::nullopt));
    return done_;
  }
  void Wait() override {
    if (!Test()) throw TransportError("receive in a group of one: nothing was sent with this tag");
  }

 private:
  static void Deliver(Box& box) {
    while (!box.messages.empty() && !box.receives.empty()) {
      box.receives.front()->message_ = std::move(box.messages.front());
      box.messages.pop_front();
      box.receives.pop_front();
    }
  }

  void Read(const Message& message) {
    CheckSameMessage(message.header, /*from=*/0, {request_.out.count, request_.out.type});
    if (!message.bytes.empty()) std::memcpy(request_.out.data, message.bytes.data(), message.bytes.size());
    done_ = true;
  }

  Box& box() { return (*mailbox_)[request_.tag]; }

  std::shared_ptr<Mailbox> mailbox_;
  Request request_;
  std::optional<Message> message_;
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
    (*mailbox_)[request.tag].messages.push_back(
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
