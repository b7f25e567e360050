#include "base/timer.h"

#include <algorithm>
#include <cmath>

namespace plait::base {

void Timer::Merge(const Timer& other) {
  if (other.count_ == 0) return;
  const double mine = static_cast<double>(count_);
  const double theirs = static_cast<double>(other.count_);
  const double delta = other.running_mean_ - running_mean_;
  count_ += other.count_;
  total_seconds_ += other.total_seconds_;
  running_mean_ += delta * theirs / (mine + theirs);
  squares_ += other.squares_ + delta * delta * mine * theirs / (mine + theirs);
}

double Timer::stdev_seconds() const {
  if (count_ < 2) return 0;
  return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_ - 1)));
}

Timer& TimerSet::Get(std::string_view name) {
  auto found = timers_.find(name);
  if (found == timers_.end()) found = timers_.emplace(std::string(name), Timer()).first;
  return found->second;
}

const Timer* TimerSet::Find(std::string_view name) const {
  const auto found = timers_.find(name);
  return found == timers_.end() ? nullptr : &found->second;
}

void TimerSet::Merge(const TimerSet& other) {
  for (const auto& [name, timer] : other.timers_) Get(name).Merge(timer);
}

void TimerSet::Reset() {
  for (auto& [name, timer] : timers_) timer = Timer();
}

}  // namespace plait::base
