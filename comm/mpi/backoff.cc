#include "comm/mpi/backoff.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace plait::comm {

void Backoff::Pause() {
  constexpr long kLongestSleep = 1'000'000;
  if (spins_left_ > 0) {
    --spins_left_;
  } else if (yields_left_ > 0) {
    --yields_left_;
    sched_yield();
  } else {
    const timespec pause = {0, sleep_nanoseconds_};
    nanosleep(&pause, nullptr);
    sleep_nanoseconds_ = std::min(sleep_nanoseconds_ + sleep_nanoseconds_ / 10, kLongestSleep);
  }
}

int AvailableCores() {
  int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (quota_file >> quota >> period && period > 0) {  // "max 100000" does not parse: no quota
    cores = std::min(cores, static_cast<int>(std::ceil(quota / period)));
  }
  return std::max(cores, 1);
}

}  // namespace plait::comm
