// Ends a job whose ranks do not come, with one line for each guilty one.
//
// A thread per process talks over TCP to the thread of rank 0 (the server): no MPI call, so it works while the
// program stands in one. It publishes the rank's position a few times per second. When a rank has waited in
// one call for longer than the timeout, or a process is gone, the server gathers all positions, finds the guilty
// (comm/watchdog/verdict.h), prints one line for each to standard error, and every process ends with
// kJobFailedExitCode. If rank 0 itself is lost, the first rank on
// another node says so (rank 1 where there is one node).
//
// SIGTERM reaches this thread (the program's threads must be started after it): a launcher that kills the job
// because one rank died cannot keep the line from being printed. Without stop_on_sigterm the process then
// ends; with it, StopRequested() turns true and the program ends by itself.
#ifndef PLAIT_COMM_WATCHDOG_WATCHDOG_H_
#define PLAIT_COMM_WATCHDOG_WATCHDOG_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::comm {

inline constexpr int kJobFailedExitCode = 70;  // EX_SOFTWARE of sysexits.h

struct WatchdogOptions {
  double start_timeout_seconds = 120;  // for the ranks to connect to rank 0
  double timeout_seconds = 600;
  bool stop_on_sigterm = false;
};

class Watchdog {
 public:
  // Before other threads exist: from now on SIGTERM waits for the watchdog.
  static void HoldSigterm();

  // Collective.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Start(const Communicator& world,
                                                         const WatchdogOptions& options);
  // Does not communicate: to the others the rank is gone.
  ~Watchdog();

  void SetTimeout(double seconds);
  bool StopRequested() const;

  // Ends the whole job; `error` is the line that names this rank. Does not return unless the server is
  // unreachable.
  void Fail(const std::string& error);
  // The program leaves the job in good order. All ranks, after a barrier.
  void Finish();

 private:
  class State;
  explicit Watchdog(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_WATCHDOG_H_
