#include "data/hdf5/trial.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "data/hdf5/walk.h"

namespace plait::data {
namespace {

constexpr rlim_t kMegabyte = rlim_t{1} << 20;

// At the hard limit of processor time the kernel kills, a second after it has said so.
void Limit(decltype(RLIMIT_CPU) resource, rlim_t most) {
  const rlimit limit = {most, most + 1};
  setrlimit(resource, &limit);
}

// Bytes of address space that the process has now.
rlim_t AddressSpace() {
  unsigned long long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr || std::fscanf(file, "%llu", &pages) != 1) return RLIM_INFINITY;
  std::fclose(file);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

[[noreturn]] void RunChild(const std::string& path, std::int64_t file_bytes) {
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  for (const int sign : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) std::signal(sign, SIG_DFL);
  const auto bytes = static_cast<rlim_t>(file_bytes);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, 10 + bytes / (10 * kMegabyte));
  const rlim_t now = AddressSpace();
  if (now != RLIM_INFINITY) Limit(RLIMIT_AS, now + 1024 * kMegabyte + 4 * bytes);
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
                                          " over it"));
}

}  // namespace plait::data
