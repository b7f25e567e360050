#include "comm/flight_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::comm {
namespace {

using Lock = std::lock_guard<std::mutex>;

std::string DescribeState(const CallRecord& call, double now) {
  switch (call.state) {
    case CallState::kInFlight:
      return absl::StrFormat("in flight for %.1f s", now - call.entered_seconds);
    case CallState::kWaiting:
      return absl::StrFormat("waiting for %.1f s", now - call.waiting_since_seconds);
    case CallState::kComplete:
      return absl::StrFormat("complete after %.6f s", call.completed_seconds - call.entered_seconds);
  }
  return "";
}

const char* BaseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

CallFingerprint CallRecord::Fingerprint() const {
  return {.sequence = sequence,
          .count = count,
          .root = root,
          .tag = IsPointToPoint(operation) ? kNoTag : tag,
          .operation = operation,
          .reduce = reduce,
          .type = type};
}

std::string DescribeCall(const CallRecord& call, absl::string_view group) {
  std::string text = Describe(call.Fingerprint(), group);
  if (call.operation == Operation::kSend) absl::StrAppend(&text, " to ", call.root, " tag ", call.tag);
  if (call.operation == Operation::kReceive) absl::StrAppend(&text, " from ", call.root, " tag ", call.tag);
  return text;
}

FlightRecorder::FlightRecorder(int capacity) : ring_(capacity), phases_({"start"}) {}

double FlightRecorder::Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void FlightRecorder::AddGroup(std::uint64_t id, absl::string_view name, std::vector<int> members) {
  Lock lock(mutex_);
  groups_[id] = {.name = std::string(name), .members = std::move(members)};
}

std::int64_t FlightRecorder::Enter(std::uint64_t group, const Request& request,
                                   const std::source_location& site, CallState state) {
  const ConstBuffer payload = Payload(request);
  const double now = Now();
  Lock lock(mutex_);
  RecordedGroup& in = groups_[group];
  Entry& entry = Slot(entered_);
  Displace(entry);
  CallRecord& call = entry.call;
  call.id = entered_++;
  call.group = group;
  call.sequence = IsPointToPoint(request.operation) ? ++in.messages : ++in.collectives;
  call.operation = request.operation;
  call.reduce = request.reduce;
  call.type = payload.type;
  call.count = payload.count;
  call.root = request.root;
  call.tag = request.tag;
  call.state = state;
  call.waited = state == CallState::kWaiting;
  call.entered_seconds = call.waiting_since_seconds = now;
  call.line = static_cast<int>(site.line());
  entry.file = site.file_name();
  entry.phase = phase_;
  if (state == CallState::kWaiting) {
    waiting_ = call.id;
    waiting_since_seconds_ = now;
  }
  return call.id;
}

FlightRecorder::Entry* FlightRecorder::Find(std::int64_t id) {
  if (Slot(id).call.id == id) return &Slot(id);
  const auto found = displaced_.find(id);
  return found == displaced_.end() ? nullptr : &found->second;
}

void FlightRecorder::Displace(const Entry& entry) {
  if (entry.call.id < 0 || entry.call.state == CallState::kComplete) return;
  displaced_[entry.call.id] = entry;
  if (displaced_.size() > ring_.size()) displaced_.erase(displaced_.begin());
}

void FlightRecorder::BeginWait(std::int64_t id) {
  const double now = Now();
  Lock lock(mutex_);
  waiting_ = id;
  waiting_since_seconds_ = now;
  Entry* const entry = Find(id);
  if (entry == nullptr) return;
  entry->call.state = CallState::kWaiting;
  entry->call.waited = true;
  entry->call.waiting_since_seconds = now;
}

void FlightRecorder::EndWait(std::int64_t id) {
  Lock lock(mutex_);
  if (waiting_ == id) waiting_ = -1;
  Entry* const entry = Find(id);
  if (entry == nullptr) return;
  entry->call.state = CallState::kInFlight;
  entry->call.waited = false;
}

void FlightRecorder::Complete(std::int64_t id) {
  const double now = Now();
  Lock lock(mutex_);
  if (waiting_ == id) waiting_ = -1;
  displaced_.erase(id);
  CallRecord& call = Slot(id).call;
  if (call.id != id) return;
  call.state = CallState::kComplete;
  call.completed_seconds = now;
}

void FlightRecorder::NoteSuspension(double seconds) {
  const double now = Now();
  Lock lock(mutex_);
  if (waiting_ < 0) return;
  // The wait may have begun since.
  waiting_since_seconds_ = std::min(waiting_since_seconds_ + seconds, now);
  if (Entry* const entry = Find(waiting_); entry != nullptr)
    entry->call.waiting_since_seconds = waiting_since_seconds_;
}

std::string FlightRecorder::SetPhase(std::string phase) {
  Lock lock(mutex_);
  std::string before = phases_[phase_];
  const auto found = std::find(phases_.begin(), phases_.end(), phase);
  phase_ = static_cast<int>(found - phases_.begin());
  if (found == phases_.end()) phases_.push_back(std::move(phase));
  return before;
}

std::vector<CallRecord> FlightRecorder::Calls() const {
  Lock lock(mutex_);
  std::vector<CallRecord> calls;
  const auto add = [&](const Entry& entry) {
    CallRecord& call = calls.emplace_back(entry.call);
    call.file = BaseName(entry.file);
    call.phase = phases_[entry.phase];
  };
  for (const Entry& entry : ring_) {
    if (entry.call.id >= 0) add(entry);
  }
  if (const auto waiting = displaced_.find(waiting_); waiting != displaced_.end()) add(waiting->second);
  std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return calls;
}

std::map<std::uint64_t, RecordedGroup> FlightRecorder::Groups() const {
  Lock lock(mutex_);
  return groups_;
}

std::string FlightRecorder::Phase() const {
  Lock lock(mutex_);
  return phases_[phase_];
}

double FlightRecorder::WaitingSeconds() const {
  Lock lock(mutex_);
  return waiting_ < 0 ? 0 : Now() - waiting_since_seconds_;
}

std::string DescribeCalls(const FlightRecorder& recorder) {
  std::string text;
  const auto groups = recorder.Groups();
  for (const CallRecord& call : recorder.Calls()) {
    absl::StrAppend(&text, DescribeCall(call, groups.at(call.group).name), " at ", call.file, ":", call.line,
                    ", ", DescribeState(call, FlightRecorder::Now()), ", in phase ", call.phase, "\n");
  }
  return text;
}

}  // namespace plait::comm
