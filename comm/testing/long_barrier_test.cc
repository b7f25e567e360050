// A rank that comes later than the timeout, which is that of this job: otherwise its watchdog ends it.
#include "comm/long_barrier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/testing/world.h"

namespace plait::comm {
namespace {

TEST(LongBarrier, WaitsForARankThatIsLaterThanTheTimeout) {
  if (testing::World().rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
  LongBarrier(testing::World(), 60);
}

}  // namespace
}  // namespace plait::comm
