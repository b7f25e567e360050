// Ends a job that hangs or has lost a rank, with one line for each rank at fault.
//
// A thread per process (the client) communicates over TCP with a thread of rank 0 (the server). It makes no MPI calls,
// so it works while the program blocks in one. Clients send their rank's position four times per second.
// If a rank has waited in one call for longer than the timeout, or a process is gone, the server gathers
// all positions, decides which ranks are at fault (comm/watchdog/verdict.h) and prints one line for each to
// standard error; every process exits with kJobFailedExitCode. The loss of rank 0 is reported by the first
// rank on another node, or by rank 1 if there is only one node.
//
// SIGTERM is handled by this thread (threads of the program must be started after HoldSignals), so a launcher that
// kills the job because one rank died cannot prevent the line. SIGHUP, unless it is ignored, is handled as SIGTERM. So is
// SIGINT, unless it is ignored: all ranks exit at once with 130 and report no fault; the launcher prints "interrupted",
// or the watchdog if there is one rank. With stop_on_signals the process continues after SIGTERM, SIGHUP, SIGUSR1 and
// the first SIGINT: StopSignal() returns the first that came, and the program ends by itself. Rank 0 then prints that
// another SIGINT ends the job at once.
//
// Time in which a process did not run (SIGSTOP, a scheduler that suspends jobs) does not count as waiting on this rank.
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
  bool stop_on_signals = false;
};

class Watchdog {
 public:
  // Blocks SIGTERM, SIGINT and SIGHUP (unless ignored) and, with stop_on_signals, SIGUSR1, so that the watchdog handles
  // them. Call before other threads exist.
  static void HoldSignals(bool stop_on_signals);

  // Collective. UNAVAILABLE, on all ranks, if the watchdogs cannot connect to rank 0.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Start(const Communicator& world,
                                                         const WatchdogOptions& options);
  // Does not communicate: to the other ranks this rank is lost.
  ~Watchdog();

  void SetTimeout(double seconds);
  int StopSignal() const;

  // Ends the whole job; `error` is the line that names this rank. Does not return unless the server is
  // unreachable.
  void Fail(const std::string& error);
  // Collective: the regular end of the job. Returns when all ranks have called it. If a rank does not, the others are
  // blocked in the call that they entered last in the flight recorder, and the timeout reports the rank.
  void Finish();

 private:
  class State;
  explicit Watchdog(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_WATCHDOG_H_
