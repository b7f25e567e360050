#include "data/trace/trace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace plait::data {

using Lock = std::lock_guard<std::mutex>;

Trace::Trace(std::int64_t capacity) : events_(capacity), counts_(capacity) {}

std::int64_t Trace::NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Trace::AddTrack(absl::string_view name) {
  Lock lock(mutex_);
  const auto found = std::find(tracks_.begin(), tracks_.end(), name);
  if (found == tracks_.end()) tracks_.emplace_back(name);
  return static_cast<int>(std::find(tracks_.begin(), tracks_.end(), name) - tracks_.begin());
}

// By address: a handful of literals, so a linear search is fast.
std::int32_t Trace::NameIndex(const char* name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::int32_t>(found - names_.begin());
  names_.push_back(name);
  return static_cast<std::int32_t>(names_.size() - 1);
}

void Trace::Add(const char* name, int track, std::int64_t begin_ns, std::int64_t end_ns,
                const TraceArguments& arguments) {
  Lock lock(mutex_);
  events_.Add({begin_ns, end_ns, NameIndex(name), track, arguments});
}

void Trace::Count(const char* name, std::int64_t at_ns, double value) {
  if (!std::isfinite(value)) return;
  Lock lock(mutex_);
  counts_.Add({at_ns, NameIndex(name), value});
}

void Trace::SetUnits(std::vector<std::string> units) {
  Lock lock(mutex_);
  units_ = std::move(units);
}

void Trace::AddDropped(std::int64_t events) {
  Lock lock(mutex_);
  dropped_elsewhere_ += events;
}

RankEvents Trace::Events() const {
  Lock lock(mutex_);
  RankEvents events;
  events.names.assign(names_.begin(), names_.end());
  events.tracks = tracks_;
  events.units = units_;
  events.events = events_.InOrder();
  events.counts = counts_.InOrder();
  events.dropped = events_.lost() + counts_.lost() + dropped_elsewhere_;
  return events;
}

std::int64_t Trace::size() const {
  Lock lock(mutex_);
  return events_.size();
}

TraceSpan::TraceSpan(Trace* trace, const char* name, const TraceArguments& arguments, int track)
    : trace_(trace),
      name_(name),
      arguments_(arguments),
      track_(track),
      begin_ns_(trace == nullptr ? 0 : Trace::NowNs()) {}

TraceSpan::~TraceSpan() {
  if (trace_ != nullptr) trace_->Add(name_, track_, begin_ns_, Trace::NowNs(), arguments_);
}

TraceLanes::TraceLanes(Trace* trace, std::string prefix) : trace_(trace), prefix_(std::move(prefix)) {}

void TraceLanes::Add(const char* name, std::int64_t begin_ns, std::int64_t end_ns,
                     const TraceArguments& arguments) {
  auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                           [&](const Lane& candidate) { return candidate.free_from_ns <= begin_ns; });
  if (lane == lanes_.end()) {
    const std::size_t number = lanes_.size() + 1;
    const int track = trace_->AddTrack(number == 1 ? prefix_ : absl::StrCat(prefix_, " ", number));
    lane = lanes_.insert(lanes_.end(), Lane{track, 0});
  }
  lane->free_from_ns = end_ns;
  trace_->Add(name, lane->track, begin_ns, end_ns, arguments);
}

}  // namespace plait::data
