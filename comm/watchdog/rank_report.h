// What watchdogs send each other about a rank, and its serialization.
#ifndef PLAIT_COMM_WATCHDOG_RANK_REPORT_H_
#define PLAIT_COMM_WATCHDOG_RANK_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/flight_recorder.h"

namespace plait::comm {

struct Position {
  std::string phase;
  std::string failure;                            // the error that this rank is ending with; empty: none
  std::map<std::uint64_t, RecordedGroup> groups;  // without members: those that were sent before
  std::vector<CallRecord> calls;                  // the latest calls, oldest first
  double at_seconds = 0;                          // when this was taken, on the clock of `calls`

  // The call in which the program is blocked; null if there is none.
  const CallRecord* Waiting() const;
  double WaitingSeconds() const;
};

enum class RankState : std::uint8_t {
  kAlive,
  kExited,   // called exit() before the end of the session
  kCrashed,  // a signal such as SIGSEGV; `exit_code` is its number
  kDead,     // the process is gone without notice: killed, or _exit()
  kSilent    // its watchdog does not answer: stopped, or unreachable
};

struct RankReport {
  int rank = 0;
  std::string host;
  int pid = 0;
  RankState state = RankState::kAlive;
  int exit_code = 0;
  Position position;
  double received_seconds = 0;  // when the position arrived, on the receiver's clock
};

// The latest `calls` calls of this process; includes an older one if the program is blocked in it.
Position TakePosition(const FlightRecorder& recorder, int calls = 24);

std::string Encode(const Position& position);
std::optional<Position> DecodePosition(absl::string_view bytes);  // nullopt if malformed

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_RANK_REPORT_H_
