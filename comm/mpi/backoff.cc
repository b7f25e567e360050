#include "comm/mpi/backoff.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

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

}  // namespace plait::comm
