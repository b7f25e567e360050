// Times the phases of a mixture-of-experts layer and counts the rows that it moves and computes: for benchmarks.
//
//   PassTrace trace;
//   const RoutedTokens routed = RouteTokens(gate, token_ranks, logits, context, &trace);
//   const ExpertLayer layer(exchange_ranks, {.experts = 32, .trace = &trace});
//   layer.Forward(...).backward();
//   trace.forward.experts;    // seconds
//
// Values accumulate until the caller resets them. Seconds are wall-clock time on this rank; of communication in the
// background only the wait counts. Without a trace no code runs. Local; one thread.
#ifndef PLAIT_PARALLEL_MOE_PASS_TRACE_H_
#define PLAIT_PARALLEL_MOE_PASS_TRACE_H_

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace plait::moe {

struct PassTrace {
  struct Phases {
    double gate = 0;         // forward only: experts and weights from logits
    double census = 0;       // forward only: counts of all ranks
    double places = 0;       // forward only: where each row goes, and what arrives from other ranks
    double replicas = 0;     // fetching weights; sending gradients home
    double permutation = 0;  // sorting rows by expert, and back
    double dispatch = 0;     // to the ranks of the experts; backward: of the gradients
    double experts = 0;
    // CPU time in `experts` of the thread that makes the passes, without the time of other ranks on the same core. Of
    // LibTorch's other threads, which share the products, it has nothing.
    double processor = 0;
    double combine = 0;  // back to the ranks of the tokens, and their sum
  };
  Phases forward, backward;
  std::int64_t computed_rows = 0;  // by experts of this rank, in forward passes
  std::int64_t sent_rows = 0;      // to other ranks, in dispatches of forward passes: RowExchange::sent_rows
  // Called before the experts of each chunk compute, forward or backward; tests look at the messages in flight.
  std::function<void(bool backward, std::size_t chunk)> before_experts;
};

// Adds the time of its scope to a phase; null: does nothing.
class PhaseClock {
 public:
  PhaseClock(PassTrace::Phases* phases, double PassTrace::Phases::*phase)
      : seconds_(phases == nullptr ? nullptr : &(phases->*phase)) {
    if (seconds_ != nullptr) begin_ = Clock::now();
  }
  ~PhaseClock() {
    if (seconds_ != nullptr) *seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point begin_;
};

// CPU time of this thread, in seconds.
inline double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Measures `experts` and `processor`.
class ExpertClock {
 public:
  explicit ExpertClock(PassTrace::Phases* phases)
      : phases_(phases),
        clock_(phases, &PassTrace::Phases::experts),
        begin_(phases == nullptr ? 0 : ProcessorSeconds()) {}
  ~ExpertClock() {
    if (phases_ != nullptr) phases_->processor += ProcessorSeconds() - begin_;
  }
  ExpertClock(const ExpertClock&) = delete;
  ExpertClock& operator=(const ExpertClock&) = delete;

 private:
  PassTrace::Phases* phases_;
  PhaseClock clock_;
  double begin_;
};

// Returns work() and adds its time to the phase.
template <typename Work>
auto Timed(PassTrace::Phases* phases, double PassTrace::Phases::*phase, const Work& work) {
  const PhaseClock clock(phases, phase);
  return work();
}

inline PassTrace::Phases* ForwardOf(PassTrace* trace) { return trace == nullptr ? nullptr : &trace->forward; }
inline PassTrace::Phases* BackwardOf(PassTrace* trace) {
  return trace == nullptr ? nullptr : &trace->backward;
}

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_PASS_TRACE_H_
