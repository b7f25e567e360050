// What the watchdogs tell each other about a rank, and its bytes on the wire.
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
  std::string failure;  // the error that this rank is ending with; empty: none
  std::map<std::uint64_t, RecordedGroup> groups;
  std::vector<CallRecord> calls;  // the latest, the oldest first
  double at_seconds = 0;          // the clock of `calls`, when this was taken

  // The call in which the program stands still.
  const CallRecord* Waiting() const;
  double WaitingSeconds() const;
};

enum class RankState : std::uint8_t {
  kAlive,
  kExited,   // called exit() in mid-run
  kCrashed,  // a signal such as SIGSEGV; `exit_code` is its number
  kDead,     // the process is gone without a word: killed, or _exit()
  kSilent    // its watchdog does not answer: stopped, or the network is broken
};

struct RankReport {
  int rank = 0;
  std::string host;
  int pid = 0;
  RankState state = RankState::kAlive;
  int exit_code = 0;
  Position position;
  double received_seconds = 0;  // when the position came, on the receiver's clock
};

// The latest `calls` calls of this process.
Position TakePosition(const FlightRecorder& recorder, int calls = 24);

std::string Encode(const Position& position);
std::optional<Position> DecodePosition(absl::string_view bytes);  // none if malformed

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_RANK_REPORT_H_
