#include "comm/interrupt.h"

#include <errno.h>
#include <unistd.h>

#include <string>

#include "base/terminal.h"

namespace plait::comm {
namespace {

// Made beforehand: a handler must not allocate.
std::string& LineOfHandler() {
  static auto* line = new std::string;
  return *line;
}

void OnInterrupt(int) {
  const std::string& line = LineOfHandler();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(kInterruptedExitCode);
}

std::string Line() { return std::string(program_invocation_short_name) + ": interrupted"; }

}  // namespace

void WriteInterrupted() { base::WriteError(Line()); }

void WriteInterruptedAndStopping() {
  base::WriteError(Line() + "; ends after this step, with its state saved (again: at once)");
}

InterruptHandler::InterruptHandler() {
  sigaction(SIGINT, nullptr, &before_);
  installed_ = (before_.sa_flags & SA_SIGINFO) == 0 && before_.sa_handler == SIG_DFL;
  if (!installed_) return;
  LineOfHandler() = base::ErrorText(Line());
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

InterruptHandler::~InterruptHandler() {
  if (installed_) sigaction(SIGINT, &before_, nullptr);
}

}  // namespace plait::comm
