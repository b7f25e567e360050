#include "comm/watchdog/watchdog_endpoint.h"

#include "base/terminal.h"

namespace plait::comm {

Position OwnPosition(const FlightRecorder& recorder, const Signals& signals) {
  Position position = TakePosition(recorder);
  if (signals.failing) position.failure = signals.error;
  return position;
}

void PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) base::WriteError(line);
}

}  // namespace plait::comm
