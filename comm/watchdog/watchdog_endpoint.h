// The two roles of a watchdog thread: the server on rank 0, a client everywhere else. Private to
// comm/watchdog.
#ifndef PLAIT_COMM_WATCHDOG_WATCHDOG_ENDPOINT_H_
#define PLAIT_COMM_WATCHDOG_WATCHDOG_ENDPOINT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/watchdog/rank_report.h"
#include "comm/watchdog/rendezvous.h"

namespace plait::comm {

// What the program's threads tell the watchdog, and the other way round.
struct Signals {
  std::atomic<double> timeout_seconds{600};
  std::atomic<int> stop_signal{0};
  std::atomic<bool> failing{false};    // `error` is set
  std::atomic<int> exit_code{-1};      // exit() was called, or a signal of this number has come
  std::atomic<bool> crashed{false};    // the latter; set before exit_code
  std::atomic<bool> finishing{false};  // the session ends in good order on this rank
  std::atomic<bool> left{false};       // ... and on all; written by the watchdog's thread
  std::string error;                   // written before `failing`
};

class WatchdogEndpoint {
 public:
  virtual ~WatchdogEndpoint() = default;
  // Sockets to wait on.
  virtual std::vector<Link*> links() = 0;
  // Called a few times per second, and whenever something has arrived. May end the process.
  virtual void Step() = 0;
  virtual void OnSigterm() = 0;
  virtual void OnInterrupt() = 0;
};

// `meeting` as Meet() gives it; the recorder and the signals outlive it.
std::unique_ptr<WatchdogEndpoint> MakeWatchdogServer(Meeting meeting, const FlightRecorder& recorder,
                                                     Signals& signals);
std::unique_ptr<WatchdogEndpoint> MakeWatchdogClient(int rank, Meeting meeting,
                                                     const FlightRecorder& recorder, Signals& signals);

// How long the watchdogs that have left wait for the others to close their links.
inline constexpr double kGoodbyeSeconds = 2;

inline RankState EndState(const Signals& signals) {
  return signals.crashed ? RankState::kCrashed : RankState::kExited;
}
// Position of this process, with the error that it ends with.
Position OwnPosition(const FlightRecorder& recorder, const Signals& signals);
void PrintLines(const std::vector<std::string>& lines);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_WATCHDOG_ENDPOINT_H_
