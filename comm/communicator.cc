#include "comm/communicator.h"

#include <exception>
#include <utility>

#include "base/check.h"
#include "comm/gathered_text.h"
#include "comm/group.h"
#include "comm/request_check.h"
#include "comm/self_backend.h"

namespace plait::comm {

Work::Work() = default;
Work::Work(std::unique_ptr<PendingWork> pending) : pending_(std::move(pending)) {}
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&& other) noexcept {
  std::swap(pending_, other.pending_);
  return *this;
}
Work::~Work() {
  PLAIT_CHECK(pending_ == nullptr || std::uncaught_exceptions() > 0)
      << "a Work was dropped before it was complete";
}

bool Work::Test() {
  if (pending_ != nullptr && pending_->Test()) pending_.reset();
  return pending_ == nullptr;
}

void Work::Wait() {
  if (pending_ != nullptr) pending_->Wait();
  pending_.reset();
}

Communicator::Communicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

Communicator Communicator::Self() {
  return Communicator(MakeWorldGroup(MakeSelfBackend(), "self", std::make_shared<Journal>(/*capacity=*/32)));
}

int Communicator::rank() const { return group_->backend().rank(); }
int Communicator::size() const { return group_->backend().size(); }
const std::string& Communicator::name() const { return group_->name(); }

Device Communicator::device() const { return group_->backend().device(); }
Communicator Communicator::OnCuda(int device_index, CallSite site) const {
  std::shared_ptr<Group> on_device = group_->OnCuda(device_index, site);
  return on_device == nullptr ? *this : Communicator(std::move(on_device));
}

const Stats& Communicator::stats() const { return group_->journal().stats; }
FlightRecorder& Communicator::recorder() const { return group_->journal().recorder; }

PhaseScope::PhaseScope(const Communicator& communicator, absl::string_view phase)
    : recorder_(communicator.recorder()), before_(recorder_.SetPhase(std::string(phase))) {}
PhaseScope::~PhaseScope() { recorder_.SetPhase(std::move(before_)); }

void Communicator::Run(const Request& request, CallSite site) const { group_->Run(request, site); }

Work Communicator::Start(const Request& request, CallSite site) const {
  return Work(group_->Start(request, site));
}

Communicator Communicator::Split(int color, int key, absl::string_view name, CallSite site) const {
  return Communicator(group_->Split(color, key, name, site));
}

void Communicator::AllReduce(Buffer values, ReduceOp op, CallSite site) const {
  Run({.operation = Operation::kAllReduce, .out = values, .reduce = op}, site);
}

Work Communicator::AllReduceAsync(Buffer values, ReduceOp op, CallSite site) const {
  return Start({.operation = Operation::kAllReduce, .out = values, .reduce = op}, site);
}

void Communicator::Broadcast(Buffer values, int root, CallSite site) const {
  Run({.operation = Operation::kBroadcast, .out = values, .root = root}, site);
}

Work Communicator::BroadcastAsync(Buffer values, int root, CallSite site) const {
  return Start({.operation = Operation::kBroadcast, .out = values, .root = root}, site);
}

void Communicator::AllGather(ConstBuffer in, Buffer out, CallSite site) const {
  Run({.operation = Operation::kAllGather, .in = in, .out = out}, site);
}

Work Communicator::AllGatherAsync(ConstBuffer in, Buffer out, CallSite site) const {
  return Start({.operation = Operation::kAllGather, .in = in, .out = out}, site);
}

void Communicator::ReduceScatter(ConstBuffer in, Buffer out, ReduceOp op, CallSite site) const {
  Run({.operation = Operation::kReduceScatter, .in = in, .out = out, .reduce = op}, site);
}

Work Communicator::ReduceScatterAsync(ConstBuffer in, Buffer out, ReduceOp op, CallSite site) const {
  return Start({.operation = Operation::kReduceScatter, .in = in, .out = out, .reduce = op}, site);
}

void Communicator::AllToAll(ConstBuffer in, Buffer out, CallSite site) const {
  Run({.operation = Operation::kAllToAll, .in = in, .out = out}, site);
}

Work Communicator::AllToAllAsync(ConstBuffer in, Buffer out, CallSite site) const {
  return Start({.operation = Operation::kAllToAll, .in = in, .out = out}, site);
}

void Communicator::Reduce(ConstBuffer in, Buffer out, ReduceOp op, int root, CallSite site) const {
  Run({.operation = Operation::kReduce, .in = in, .out = out, .reduce = op, .root = root}, site);
}

Work Communicator::ReduceAsync(ConstBuffer in, Buffer out, ReduceOp op, int root, CallSite site) const {
  return Start({.operation = Operation::kReduce, .in = in, .out = out, .reduce = op, .root = root}, site);
}

void Communicator::Gather(ConstBuffer in, Buffer out, int root, CallSite site) const {
  Run({.operation = Operation::kGather, .in = in, .out = out, .root = root}, site);
}

Work Communicator::GatherAsync(ConstBuffer in, Buffer out, int root, CallSite site) const {
  return Start({.operation = Operation::kGather, .in = in, .out = out, .root = root}, site);
}

void Communicator::Scatter(ConstBuffer in, Buffer out, int root, CallSite site) const {
  Run({.operation = Operation::kScatter, .in = in, .out = out, .root = root}, site);
}

Work Communicator::ScatterAsync(ConstBuffer in, Buffer out, int root, CallSite site) const {
  return Start({.operation = Operation::kScatter, .in = in, .out = out, .root = root}, site);
}

void Communicator::Send(ConstBuffer values, int to, int tag, CallSite site) const {
  Run({.operation = Operation::kSend, .in = values, .root = to, .tag = tag}, site);
}

Work Communicator::SendAsync(ConstBuffer values, int to, int tag, CallSite site) const {
  return Start({.operation = Operation::kSend, .in = values, .root = to, .tag = tag}, site);
}

void Communicator::Receive(Buffer values, int from, int tag, CallSite site) const {
  Run({.operation = Operation::kReceive, .out = values, .root = from, .tag = tag}, site);
}

Work Communicator::ReceiveAsync(Buffer values, int from, int tag, CallSite site) const {
  return Start({.operation = Operation::kReceive, .out = values, .root = from, .tag = tag}, site);
}

void Communicator::Barrier(CallSite site) const { Run({.operation = Operation::kBarrier}, site); }

Work Communicator::BarrierAsync(CallSite site) const {
  return Start({.operation = Operation::kBarrier}, site);
}

void Communicator::AllToAllV(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                             absl::Span<const std::int64_t> receive_counts, CallSite site) const {
  AllToAllVAsync(in, send_counts, out, receive_counts, site).Wait();
}

Work Communicator::AllToAllVAsync(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                                  absl::Span<const std::int64_t> receive_counts, CallSite site) const {
  return Start({.operation = Operation::kAllToAllV,
                .in = in,
                .out = out,
                .send_counts = {send_counts.begin(), send_counts.end()},
                .receive_counts = {receive_counts.begin(), receive_counts.end()}},
               site);
}

absl::Status Communicator::Agree(const absl::Status& mine, CallSite site) const {
  // {worst code, -(lowest failing rank)}: one maximum finds both.
  std::int64_t verdict[2] = {mine.raw_code(), mine.ok() ? -size() : -rank()};
  AllReduce(BufferOf(absl::MakeSpan(verdict)), ReduceOp::kMax, site);
  if (verdict[0] == 0) return absl::OkStatus();
  const int root = static_cast<int>(-verdict[1]);
  return absl::Status(static_cast<absl::StatusCode>(verdict[0]),
                      BroadcastText(*this, mine.message(), root, site));
}

}  // namespace plait::comm
