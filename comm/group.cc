#include "comm/group.h"

#include <utility>

#include "base/check.h"
#include "comm/request_check.h"
#include "comm/self_backend.h"

namespace plait::comm {
namespace {

// Records the progress of an operation in flight.
class RecordedWork : public PendingWork {
 public:
  RecordedWork(std::unique_ptr<PendingWork> inner, std::shared_ptr<Journal> journal, OperationStats& stats,
               std::int64_t id, double entered_seconds)
      : inner_(std::move(inner)),
        journal_(std::move(journal)),
        stats_(stats),
        id_(id),
        entered_seconds_(entered_seconds) {}

  bool Test() override {
    if (!complete_ && inner_->Test()) Complete(0);
    return complete_;
  }

  void Wait() override {
    if (Test()) return;
    journal_->recorder.BeginWait(id_);
    const double begin = FlightRecorder::Now();
    inner_->Wait();
    Complete(FlightRecorder::Now() - begin);
  }

 private:
  void Complete(double exposed_seconds) {
    complete_ = true;
    stats_.in_flight_seconds += FlightRecorder::Now() - entered_seconds_;
    stats_.exposed_seconds += exposed_seconds;
    journal_->recorder.Complete(id_);
  }

  std::unique_ptr<PendingWork> inner_;
  std::shared_ptr<Journal> journal_;
  OperationStats& stats_;
  std::int64_t id_;
  double entered_seconds_;
  bool complete_ = false;
};

// splitmix64's finalizer: spreads the bits.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Group::Group(std::unique_ptr<Backend> backend, std::string name, std::uint64_t id,
             std::shared_ptr<Journal> journal)
    : backend_(std::move(backend)),
      name_(std::move(name)),
      id_(id),
      journal_(std::move(journal)),
      stats_(&journal_->stats[name_]) {
  journal_->recorder.AddGroup(id_, name_, backend_->members());
}

void Group::Check(const Request& request) const {
  CheckRequest(request, backend_->rank(), backend_->size(), backend_->device());
  const auto has_memory = [](ConstBuffer buffer) { return buffer.count == 0 || buffer.data != nullptr; };
  PLAIT_CHECK(backend_->takes_meta() || (has_memory(request.in) && has_memory(request.out)))
      << "a buffer without memory (of a tensor on the meta device) between real ranks";
}

OperationStats& Group::Count(const Request& request) {
  OperationStats& stats = (*stats_)[static_cast<int>(request.operation)];
  ++stats.calls;
  stats.payload_bytes += Payload(request).bytes();
  stats.wire_bytes += WireBytes(request, backend_->rank(), backend_->size());
  return stats;
}

void Group::Run(const Request& request, const std::source_location& site) {
  Check(request);
  OperationStats& stats = Count(request);
  const std::int64_t id = journal_->recorder.Enter(id_, request, site, CallState::kWaiting);
  const double begin = FlightRecorder::Now();
  backend_->Run(request);
  const double seconds = FlightRecorder::Now() - begin;
  stats.in_flight_seconds += seconds;
  stats.exposed_seconds += seconds;
  journal_->recorder.Complete(id);
}

std::unique_ptr<PendingWork> Group::Start(const Request& request, const std::source_location& site) {
  Check(request);
  OperationStats& stats = Count(request);
  // NCCL connects ranks in the call that starts their first operation: it waits for the others, who may never come.
  const bool may_block = backend_->device() == Device::kCuda;
  const std::int64_t id =
      journal_->recorder.Enter(id_, request, site, may_block ? CallState::kWaiting : CallState::kInFlight);
  const double begin = FlightRecorder::Now();
  std::unique_ptr<PendingWork> started = backend_->Start(request);
  if (may_block) journal_->recorder.EndWait(id);
  return std::make_unique<RecordedWork>(std::move(started), journal_, stats, id, begin);
}

std::shared_ptr<Group> Group::Split(int color, int key, absl::string_view name,
                                    const std::source_location& site) {
  const std::int64_t call =
      journal_->recorder.Enter(id_, {.operation = Operation::kSplit}, site, CallState::kWaiting);
  std::unique_ptr<Backend> part =
      backend_->SplitNamed(color, key, std::string_view(name.data(), name.size()));
  journal_->recorder.Complete(call);
  // Ranks with a negative color get a group of one each, with an id of its own.
  const std::int64_t part_index = color >= 0 ? color : -1 - backend_->rank();
  const std::uint64_t id = Mix(Mix(id_ + ++splits_) + static_cast<std::uint64_t>(part_index));
  if (part == nullptr) part = MakeSelfBackend(backend_->members()[backend_->rank()]);
  return std::make_shared<Group>(std::move(part), std::string(name), id, journal_);
}

std::shared_ptr<Group> Group::OnCuda(int device_index, const std::source_location& site) {
  if (on_cuda_ != nullptr || !journal_->device_backend) return on_cuda_;
  const std::int64_t call =
      journal_->recorder.Enter(id_, {.operation = Operation::kSplit}, site, CallState::kWaiting);
  auto backend = journal_->device_backend(*backend_, device_index);
  journal_->recorder.Complete(call);
  on_cuda_ = std::make_shared<Group>(std::move(backend), name_, Mix(id_ ^ 0x43554441), journal_);
  return on_cuda_;
}

std::shared_ptr<Group> MakeWorldGroup(std::unique_ptr<Backend> backend, std::string name,
                                      std::shared_ptr<Journal> journal) {
  return std::make_shared<Group>(std::move(backend), std::move(name), kWorldGroup, std::move(journal));
}

}  // namespace plait::comm
