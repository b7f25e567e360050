#include "data/hdf5/trial.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "data/hdf5/quiet_child.h"
#include "data/hdf5/walk.h"

namespace plait::data {
namespace {

[[noreturn]] void RunChild(absl::FunctionRef<void()> walk, std::int64_t file_bytes, int report) {
  constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;
  BecomeQuietChild(1024 * kMegabyte + 4 * file_bytes);
  // SIGXCPU at the soft limit; SIGKILL at the hard limit, one second later.
  const auto seconds = static_cast<rlim_t>(10 + file_bytes / (10 * kMegabyte));
  const rlimit time = {seconds, seconds + 1};
  setrlimit(RLIMIT_CPU, &time);
  walk();
  _exit(write(report, "", 1) == 1 ? 0 : 1);
}

// Whether the child wrote its byte: its exit status is lost where this process ignores SIGCHLD.
bool Reported(int report) {
  char byte;
  ssize_t got;
  while ((got = read(report, &byte, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

}  // namespace

absl::Status TryInChild(const std::string& path) {
  return TryInChild(path, [&path] { WalkFile(path); });
}

absl::Status TryInChild(const std::string& path, absl::FunctionRef<void()> walk) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  int report[2];
  // Without room for a pipe or a process: as sound as HDF5 is itself.
  if (pipe2(report, O_CLOEXEC) != 0) return absl::OkStatus();
  const pid_t child = fork();
  if (child == 0) RunChild(walk, about.st_size, report[1]);
  close(report[1]);
  const bool survived = child < 0 || Reported(report[0]);
  close(report[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (survived) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": damaged: HDF5 ",
                                          WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU
                                              ? "does not come to an end"
                                              : "crashes or runs out of memory",
                                          " on it"));
}

}  // namespace plait::data
