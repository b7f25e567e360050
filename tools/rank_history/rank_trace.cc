#include "tools/rank_history/rank_trace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/host_name.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "data/trace/chrome_trace.h"

namespace plait::rank_history {
namespace {

constexpr char kOwnGroup[] = "trace";
constexpr int kTag = 1;

double NowSeconds() { return 1e-9 * static_cast<double>(data::Trace::NowNs()); }

std::int64_t Nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

data::TraceArguments ArgumentsOf(const comm::CallRecord& call, std::uint64_t link, int units) {
  const bool named = !comm::IsPointToPoint(call.operation) && call.tag < units;
  return {.bytes = call.count * comm::SizeInBytes(call.type),
          .sequence = call.sequence,
          // A difference of rounded times, so that the span inside does not begin a nanosecond early.
          .waited_ns =
              call.waited ? Nanoseconds(call.completed_seconds) - Nanoseconds(call.waiting_since_seconds) : 0,
          .link = link,
          .unit = named ? call.tag : -1,
          .sends = call.operation == comm::Operation::kSend};
}

absl::Span<std::byte> BytesOf(std::string& text) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size());
}

}  // namespace

std::vector<comm::ClockOffset> MeasureTraceClocks(const comm::Communicator& group) {
  return comm::MeasureClockOffsets(group, NowSeconds);
}

RankTrace::RankTrace(comm::Communicator group, const RankTraceOptions& options)
    : group_(std::move(group)), options_(options) {}

std::unique_ptr<RankTrace> RankTrace::Create(const comm::Communicator& world,
                                             const RankTraceOptions& options) {
  if (options.path.empty())
    return std::unique_ptr<RankTrace>(new RankTrace(comm::Communicator::Self(), options));
  auto trace = std::unique_ptr<RankTrace>(new RankTrace(world.Split(0, world.rank(), kOwnGroup), options));
  const std::int64_t share = std::max<std::int64_t>(options.max_events / world.size(), 1);
  trace->trace_ = std::make_unique<data::Trace>(std::min(options.max_events_of_rank, share));
  trace->start_ = trace->MeasureClock();
  const std::vector<comm::CallRecord> calls = trace->group_.recorder().Calls();
  trace->next_call_ = calls.empty() ? 0 : calls.back().id + 1;
  return trace;
}

// An id that is the same on all ranks of a call, and differs between calls.
std::uint64_t RankTrace::LinkOf(const comm::CallRecord& call, const comm::RecordedGroup& group) {
  if (!comm::IsPointToPoint(call.operation)) {
    const std::uint64_t link = (call.group ^ static_cast<std::uint64_t>(call.sequence)) * 0x9e3779b97f4a7c15;
    return link == 0 ? 1 : link;
  }
  if (!messages_.has_value()) return 0;
  const auto& members = group.members;
  int from = static_cast<int>(std::find(members.begin(), members.end(), group_.rank()) - members.begin());
  int to = call.root;
  if (call.operation == comm::Operation::kReceive) std::swap(from, to);
  const std::uint64_t count = (*messages_)[{call.group, from, to, call.tag}]++;
  return base::DeriveSeed(call.group, absl::StrCat(from, ">", to, "#", call.tag), count) | 1;
}

void RankTrace::SetUnits(std::vector<std::string> names) {
  if (trace_ == nullptr) return;
  units_ = static_cast<int>(names.size());
  trace_->SetUnits(std::move(names));
}

void RankTrace::TakeCalls() {
  if (trace_ == nullptr) return;
  const std::vector<comm::CallRecord> calls = group_.recorder().Calls();
  const std::map<std::uint64_t, comm::RecordedGroup> groups = group_.recorder().Groups();
  if (!calls.empty()) ForgetBefore(calls.front().id);
  for (const comm::CallRecord& call : calls) {
    const auto known = in_flight_.find(call.id);
    if (call.id < next_call_ && known == in_flight_.end()) continue;
    const comm::RecordedGroup& group = groups.at(call.group);
    // Calls are visited in the order of entry, in which LinkOf numbers messages.
    const std::uint64_t link = known != in_flight_.end() ? known->second : LinkOf(call, group);
    next_call_ = std::max(next_call_, call.id + 1);
    if (call.state != comm::CallState::kComplete) {
      in_flight_[call.id] = link;
      continue;
    }
    in_flight_.erase(call.id);
    if (group.members.size() < 2 || group.name == kOwnGroup) continue;
    const auto lane = lanes_.try_emplace(group.name, trace_.get(), group.name).first;
    lane->second.Add(comm::Name(call.operation).data(), Nanoseconds(call.entered_seconds),
                     Nanoseconds(call.completed_seconds), ArgumentsOf(call, link, units_));
  }
}

// The flight recorder has dropped calls before `oldest`.
void RankTrace::ForgetBefore(std::int64_t oldest) {
  while (!in_flight_.empty() && in_flight_.begin()->first < oldest) {
    in_flight_.erase(in_flight_.begin());
    trace_->AddDropped(1);
  }
  if (oldest <= next_call_) return;
  trace_->AddDropped(oldest - next_call_);
  messages_.reset();
  next_call_ = oldest;
}

RankTrace::ClockMoment RankTrace::MeasureClock() const {
  const std::vector<comm::ClockOffset> offsets = options_.measure_offsets(group_);
  return {.at_seconds = NowSeconds(), .offset_seconds = -offsets[group_.rank()].seconds};
}

data::RankEvents RankTrace::OwnEvents(const ClockMoment& end) const {
  data::RankEvents events = trace_->Events();
  events.rank = group_.rank();
  events.host = base::HostName();
  events.moments_seconds[0] = start_.at_seconds;
  events.moments_seconds[1] = end.at_seconds;
  events.offsets_seconds[0] = start_.offset_seconds;
  events.offsets_seconds[1] = end.offset_seconds;
  return events;
}

absl::Status RankTrace::Write(const std::map<std::string, std::string>& run) {
  if (trace_ == nullptr) return absl::OkStatus();
  TakeCalls();
  return group_.Agree(Collect(data::ToBytes(OwnEvents(MeasureClock())), run));
}

// One rank at a time, so that rank 0 holds the serialized bytes of only one.
absl::Status RankTrace::Collect(const std::string& bytes, const std::map<std::string, std::string>& run) {
  std::string own = bytes;
  if (group_.rank() != 0) {
    const std::int64_t size[1] = {static_cast<std::int64_t>(own.size())};
    group_.Send(comm::ConstBufferOf(absl::MakeConstSpan(size)), 0, kTag);
    group_.Send(comm::BufferOf(BytesOf(own)), 0, kTag);
    return absl::OkStatus();
  }
  absl::Status status;
  std::vector<data::RankEvents> ranks;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank > 0) {
      std::int64_t size[1] = {0};
      group_.Receive(comm::BufferOf(absl::MakeSpan(size)), rank, kTag);
      own.resize(size[0]);
      group_.Receive(comm::BufferOf(BytesOf(own)), rank, kTag);
    }
    absl::StatusOr<data::RankEvents> events = data::FromBytes(own);
    status.Update(events.status());
    if (!events.ok()) continue;
    dropped_ += events->dropped;
    ranks.push_back(*std::move(events));
  }
  PLAIT_RETURN_IF_ERROR(status);
  return data::WriteChromeTrace(options_.path, ranks, run);
}

}  // namespace plait::rank_history
