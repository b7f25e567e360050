#include "comm/step_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "base/host_name.h"
#include "comm/launch/supervision/agent_message.h"
#include "comm/watchdog/watchdog.h"

namespace plait::comm {

namespace {

constexpr double kLongest = 1e9;  // in nanoseconds it fits into 64 bits

}  // namespace

StepWatch::StepWatch(int rank, double timeout_seconds)
    : rank_(rank), timeout_seconds_(std::min(timeout_seconds, kLongest)), thread_([this] { Watch(); }) {}

StepWatch::~StepWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

namespace {

// The descriptor may have been closed on the way to this process and reused for another file: compares the inode.
void TellAgent(const std::string& step) {
  const char* variable = std::getenv(kStartStepVariable);
  int file = -1;
  unsigned long long inode = 0;
  if (variable == nullptr || std::sscanf(variable, "%d %llu", &file, &inode) != 2) return;
  struct stat found = {};
  if (fstat(file, &found) != 0 || !S_ISFIFO(found.st_mode) || found.st_ino != inode) return;
  [[maybe_unused]] const ssize_t written = write(file, step.data(), step.size());
}

}  // namespace

void StepWatch::Enter(const std::string& step) {
  TellAgent(step);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    step_ = step;
    ++steps_;
  }
  changed_.notify_one();
}

void StepWatch::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    const auto timeout = std::chrono::duration<double>(timeout_seconds_);
    const bool moved =
        changed_.wait_for(lock, timeout, [this, seen = steps_] { return ended_ || steps_ != seen; });
    if (moved) continue;
    const std::string line = absl::StrFormat(
        "rank %d (%s, pid %d) has waited %g s in %s: a rank without such a line has not come, or is "
        "cut off\n",
        rank_, base::HostName(), getpid(), timeout_seconds_, step_);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    _exit(kJobFailedExitCode);
  }
}

}  // namespace plait::comm
