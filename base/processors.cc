#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace plait::base {

int UsableProcessors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines of more than CPU_SETSIZE processors.
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace plait::base
