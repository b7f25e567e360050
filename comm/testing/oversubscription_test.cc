// More ranks than cores: a rank that waits must leave the core to the ranks that work.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/types/span.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// All ranks but 0 wait in `operation`, which rank 0 enters three seconds later. Ranks that poll take together
// what the cores have to give in that time (six seconds on two idle cores); seven that sleep 1 ms between
// polls of some microseconds each take about a tenth of a second.
template <typename Operation>
void ExpectIdleWait(Operation operation) {
  World().Barrier();
  const double before = CpuSeconds();
  if (World().rank() == 0) sleep(3);
  operation();
  double used[1] = {CpuSeconds() - before};
  World().AllReduce(BufferOf(absl::MakeSpan(used)));
  if (World().rank() == 0) std::printf("cpu seconds of all ranks: %.3f\n", used[0]);
  EXPECT_LT(used[0], 0.6);
}

TEST(Oversubscription, WaitsInAllReduceWithoutBurningTheCore) {
  std::vector<float> values(100000, 1.0f);
  ExpectIdleWait([&] { World().AllReduce(BufferOf(absl::MakeSpan(values))); });
  EXPECT_EQ(values[77], static_cast<float>(World().size()));
}

TEST(Oversubscription, WaitsInReceiveWithoutBurningTheCore) {
  std::vector<float> values(1000, static_cast<float>(World().rank()));
  ExpectIdleWait([&] {
    if (World().rank() > 0) return World().Receive(BufferOf(absl::MakeSpan(values)), 0, 1);
    for (int to = 1; to < World().size(); ++to) World().Send(BufferOf(absl::MakeSpan(values)), to, 1);
  });
  EXPECT_EQ(values[77], 0.0f);
}

// A token goes round many times: every step wakes a rank that sleeps.
TEST(Oversubscription, RingOfShortMessages) {
  const int size = World().size(), rank = World().rank();
  std::int64_t token[1] = {0};
  for (int round = 0; round < 50; ++round) {
    if (rank > 0 || round > 0) World().Receive(BufferOf(absl::MakeSpan(token)), (rank + size - 1) % size, 0);
    ++token[0];
    World().Send(BufferOf(absl::MakeSpan(token)), (rank + 1) % size, 0);
  }
  if (rank == 0) {
    World().Receive(BufferOf(absl::MakeSpan(token)), size - 1, 0);
    EXPECT_EQ(token[0], 50 * size);
  }
}

}  // namespace
}  // namespace plait::comm
