#include "data/hdf5/trial.h"

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

[[noreturn]] void RunChild(const std::string& path, std::int64_t file_bytes) {
  constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;
  BecomeQuietChild(1024 * kMegabyte + 4 * file_bytes);
  // SIGXCPU at the soft limit; SIGKILL at the hard limit, one second later.
  const auto seconds = static_cast<rlim_t>(10 + file_bytes / (10 * kMegabyte));
  const rlimit time = {seconds, seconds + 1};
  setrlimit(RLIMIT_CPU, &time);
  WalkFile(path);
  _exit(0);
}

}  // namespace

absl::Status TryInChild(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  const pid_t child = fork();
  if (child < 0) return absl::OkStatus();  // no room for a process: as sound as HDF5 is itself
  if (child == 0) RunChild(path, about.st_size);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": damaged: HDF5 ",
                                          WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU
                                              ? "does not come to an end"
                                              : "crashes or runs out of memory",
                                          " on it"));
}

}  // namespace plait::data
