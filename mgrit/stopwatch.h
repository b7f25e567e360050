// Adds the duration of a scope to `total_seconds`.
#ifndef PLAIT_MGRIT_STOPWATCH_H_
#define PLAIT_MGRIT_STOPWATCH_H_

#include <chrono>

namespace plait::mgrit {

class Stopwatch {
 public:
  explicit Stopwatch(double& total_seconds) : total_seconds_(total_seconds), start_(Clock::now()) {}
  ~Stopwatch() { total_seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& total_seconds_;
  Clock::time_point start_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_STOPWATCH_H_
