// Named timers: count, total, mean and standard deviation.
//
//   TimerSet timers;                               // one per rank, owned by the program and passed down
//   Timer& step = timers.Get("ForWD::step");       // look up once ...
//   for (...) {
//     ScopedTimer scope(step);                     // ... time often: two clock reads, no allocation, no lock
//     ...
//   }
//   std::cout << TimerTable(timers, rank);         // base/timer_report.h
//
// A reference from Get() stays valid as long as the set. Not thread-safe: give each thread its own set and Merge()
// them. Local.
#ifndef PLAIT_BASE_TIMER_H_
#define PLAIT_BASE_TIMER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace plait::base {

// Welford's running moments (Technometrics 4(3), 1962): no cancellation for any number of samples.
class Timer {
 public:
  void Add(double seconds) {
    ++count_;
    total_seconds_ += seconds;
    const double delta = seconds - running_mean_;
    running_mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (seconds - running_mean_);
  }

  // As if every sample of `other` had been added here (Chan, Golub, LeVeque 1979).
  void Merge(const Timer& other);

  std::int64_t count() const { return count_; }
  double total_seconds() const { return total_seconds_; }
  double mean_seconds() const { return count_ == 0 ? 0 : total_seconds_ / static_cast<double>(count_); }
  // Sample standard deviation (divides by count - 1); 0 with fewer than two samples.
  double stdev_seconds() const;

 private:
  std::int64_t count_ = 0;
  double total_seconds_ = 0;
  double running_mean_ = 0;
  double squares_ = 0;  // sum of squared distances from the mean
};

// Adds the time from construction to destruction, or to Stop(), whichever comes first.
class ScopedTimer {
 public:
  explicit ScopedTimer(Timer& timer) : timer_(&timer), start_(Clock::now()) {}
  ~ScopedTimer() { Stop(); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

  void Stop() {
    if (timer_ == nullptr) return;
    timer_->Add(std::chrono::duration<double>(Clock::now() - start_).count());
    timer_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Timer* timer_;
  Clock::time_point start_;
};

class TimerSet {
 public:
  // The timer of that name, created on first use.
  Timer& Get(std::string_view name);
  // Null if Get() was never called with this name.
  const Timer* Find(std::string_view name) const;

  void Merge(const TimerSet& other);
  // Zeroes all timers; references stay valid.
  void Reset();

  // Sorted by name.
  const std::map<std::string, Timer, std::less<>>& timers() const { return timers_; }

 private:
  std::map<std::string, Timer, std::less<>> timers_;
};

}  // namespace plait::base

#endif  // PLAIT_BASE_TIMER_H_
