// A job that a scheduler suspends for longer than the timeout, which is that of this job, and then continues.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

std::vector<std::int32_t> PidsOfRanks() {
  std::int32_t mine[1] = {getpid()};
  std::vector<std::int32_t> pids(testing::World().size());
  testing::World().AllGather(BufferOf(absl::MakeSpan(mine)), BufferOf(absl::MakeSpan(pids)));
  return pids;
}

// The process that does it, once others wait for this rank.
pid_t SuspendSoon(const std::vector<std::int32_t>& ranks, int seconds) {
  const pid_t child = fork();
  if (child != 0) return child;
  usleep(500'000);
  for (const std::int32_t rank : ranks) kill(rank, SIGSTOP);
  sleep(seconds);
  for (const std::int32_t rank : ranks) kill(rank, SIGCONT);
  _exit(0);
}

// The others wait for rank `late`, whose own watchdog reports to rank 0 as theirs do.
void SuspendWhileOthersWait(int late) {
  const std::vector<std::int32_t> ranks = PidsOfRanks();
  if (testing::World().rank() == late) {
    const pid_t child = SuspendSoon(ranks, /*seconds=*/5);
    int status = -1;
    while (waitpid(child, &status, 0) != child) {
    }
    EXPECT_EQ(status, 0);
    usleep(500'000);  // the watchdogs may find that it was too long
  }
  std::int64_t ones[1] = {1};
  testing::World().AllReduce(BufferOf(absl::MakeSpan(ones)));
  EXPECT_EQ(ones[0], testing::World().size());
}

TEST(Suspension, DoesNotCountTowardsTheTimeout) {
  SuspendWhileOthersWait(0);
  SuspendWhileOthersWait(testing::World().size() - 1);
}

}  // namespace
}  // namespace plait::comm
