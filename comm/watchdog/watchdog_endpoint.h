// The two roles of a watchdog thread: server on rank 0, client on all other ranks. Private to comm/watchdog.
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

// State shared between the program's threads and the watchdog.
struct Signals {
  std::atomic<double> timeout_seconds{600};
  std::atomic<int> stop_signal{0};
  std::atomic<bool> failing{false};    // `error` is set
  std::atomic<int> exit_code{-1};      // exit()'s code, or the number of the signal that crashed it
  std::atomic<bool> crashed{false};    // the latter; set before exit_code
  std::atomic<bool> finishing{false};  // the session ends regularly on this rank
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
  // This process did not run for that time: nobody is late because of it.
  virtual void OnSuspension(double seconds) = 0;
  virtual void OnTermination(int signal) = 0;  // SIGTERM or SIGHUP
  virtual void OnInterrupt() = 0;
};

// `meeting` comes from Meet(); the recorder and the signals must outlive the endpoint.
std::unique_ptr<WatchdogEndpoint> MakeWatchdogServer(Meeting meeting, const FlightRecorder& recorder,
                                                     Signals& signals);
std::unique_ptr<WatchdogEndpoint> MakeWatchdogClient(int rank, Meeting meeting,
                                                     const FlightRecorder& recorder, Signals& signals);

// How long a finished watchdog waits for the others to close their links.
inline constexpr double kGoodbyeSeconds = 2;

inline RankState EndState(const Signals& signals) {
  return signals.crashed ? RankState::kCrashed : RankState::kExited;
}
// Position of this process, including the error passed to Fail(), if any.
Position OwnPosition(const FlightRecorder& recorder, const Signals& signals);
void PrintLines(const std::vector<std::string>& lines);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_WATCHDOG_ENDPOINT_H_
