#include "comm/watchdog/watchdog_endpoint.h"

#include <unistd.h>

namespace plait::comm {

Position OwnPosition(const FlightRecorder& recorder, const Signals& signals) {
  Position position = TakePosition(recorder);
  if (signals.failing) position.failure = signals.error;
  return position;
}

void PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::string text = line + "\n";
    // One write: lines of several processes do not mix. Nothing can be done when it fails.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }
}

}  // namespace plait::comm
