#include "base/check.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace plait::base::internal {

CheckFailure::CheckFailure(const char* what, const char* file, int line) {
  head_ << file << ":" << line << ": " << what << " failed";
}

CheckFailure::~CheckFailure() {
  std::string line = head_.str();
  if (const std::string message = message_.str(); !message.empty()) line += ": " + message;
  line += "\n";
  // One write: lines of several ranks do not mix. Nothing can be done when it fails.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

std::ostream& CheckFailure::stream() { return message_; }

}  // namespace plait::base::internal
