// More ranks than cores: waiting ranks must leave the cores to the ranks that work.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

// Counters of the main thread of a process on this machine.
struct Activity {
  std::int64_t sleeps = 0;  // voluntary context switches; sched_yield does not count
  double cpu_seconds = 0;
};

Activity ActivityOf(std::int64_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  Activity activity;
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("voluntary_ctxt_switches:", 0) == 0) activity.sleeps = std::stoll(line.substr(24));
  }
  double nanoseconds = 0;
  std::ifstream(folder + "/schedstat") >> nanoseconds;
  activity.cpu_seconds = 1e-9 * nanoseconds;
  return activity;
}

// Whether a rank that waits sleeps, or polls: which comes first, 300 sleeps or 0.15 s on a core? Sleeps grow
// to 1 ms, with polls of some microseconds between them, so that 300 take some milliseconds of a core,
// however long they last on a busy machine. Half a millisecond per sleep would be half of a core.
enum class Waiting { kUndecided, kSleeps, kPolls };
Waiting HowItWaits(std::int64_t process, const Activity& before) {
  const Activity now = ActivityOf(process);
  if (now.cpu_seconds - before.cpu_seconds > 0.15) return Waiting::kPolls;
  return now.sleeps - before.sleeps >= 300 ? Waiting::kSleeps : Waiting::kUndecided;
}

// All ranks but 0 wait in `operation`, which rank 0 enters once it has determined how each of them waits.
template <typename Operation>
void ExpectIdleWait(Operation operation) {
  const int size = World().size();
  const std::vector<std::int64_t> mine = {getpid()};
  std::vector<std::int64_t> processes(static_cast<std::size_t>(size));
  World().AllGather(ConstBufferOf(absl::MakeConstSpan(mine)), BufferOf(absl::MakeSpan(processes)));
  if (World().rank() != 0) return operation();
  std::vector<Activity> before;
  for (const std::int64_t process : processes) before.push_back(ActivityOf(process));
  for (int rank = 1; rank < size; ++rank) {
    Waiting waiting = Waiting::kUndecided;
    while (waiting == Waiting::kUndecided) {
      usleep(1000);
      waiting = HowItWaits(processes[rank], before[rank]);
    }
    EXPECT_EQ(waiting, Waiting::kSleeps) << "rank " << rank << " polls while it waits";
  }
  operation();
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

// A token passes round the ranks many times: every step wakes a sleeping rank.
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
