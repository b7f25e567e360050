#include "data/hdf5/quiet_child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <initializer_list>

namespace plait::data {
namespace {

// Bytes of address space that the process has now.
rlim_t AddressSpace() {
  unsigned long long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr || std::fscanf(file, "%llu", &pages) != 1) return RLIM_INFINITY;
  std::fclose(file);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void BecomeQuietChild(std::int64_t memory_bytes) {
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  for (const int sign : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGPROF}) {
    std::signal(sign, SIG_DFL);
  }
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlim_t now = AddressSpace();
  if (now == RLIM_INFINITY) return;
  const rlim_t most = now + static_cast<rlim_t>(memory_bytes);
  const rlimit memory = {most, most};
  setrlimit(RLIMIT_AS, &memory);
}

}  // namespace plait::data
