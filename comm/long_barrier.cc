#include "comm/long_barrier.h"

#include <chrono>
#include <thread>

namespace plait::comm {

void LongBarrier(const Communicator& comm, double seconds, CallSite site) {
  constexpr std::chrono::milliseconds kPause(5);
  const auto begin = std::chrono::steady_clock::now();
  Work all = comm.BarrierAsync(site);
  // The watchdog counts the time within Wait only.
  while (!all.Test() &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    std::this_thread::sleep_for(kPause);
  }
  all.Wait();
}

}  // namespace plait::comm
