// What the conformance suite cannot see: that shared memory is used, bits across the ways, and calls that
// block in MPI while operations are under way.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/mpi/node_segment.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

std::vector<float> RandomValues(std::int64_t count) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = std::sin(1.7f * static_cast<float>(World().rank()) + 0.3f * static_cast<float>(i));
  }
  return values;
}

// The sum in the ranks' order.
std::vector<float> SumInOrder(const std::vector<float>& mine) {
  std::vector<float> all(mine.size() * World().size()), sum(mine.size());
  World().AllGather(ConstBufferOf(absl::MakeConstSpan(mine)), BufferOf(absl::MakeSpan(all)));
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = all[i];
    for (int rank = 1; rank < World().size(); ++rank) sum[i] += all[rank * mine.size() + i];
  }
  return sum;
}

// Sizes: all post all, a row, many rows.
TEST(SharedMemory, AllReduceAndReduceScatterGiveTheBitsOfTheSumInOrder) {
  for (const std::int64_t part : {3, 1000, 50'021, 500'009}) {
    const std::vector<float> mine = RandomValues(part * World().size());
    const std::vector<float> expected = SumInOrder(mine);
    std::vector<float> all = mine, scattered(part);
    World().AllReduce(BufferOf(absl::MakeSpan(all)));
    World().ReduceScatter(ConstBufferOf(absl::MakeConstSpan(mine)), BufferOf(absl::MakeSpan(scattered)));
    EXPECT_TRUE(all == expected) << part;
    const auto own = expected.begin() + part * World().rank();
    EXPECT_TRUE(scattered == std::vector<float>(own, own + part)) << part;
  }
}

TEST(SharedMemory, IsMappedAndHasNoName) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int segments = 0;
  while (std::getline(maps, line)) {
    if (line.find("plait_node_segment") == std::string::npos) continue;
    ++segments;
    EXPECT_NE(line.find("(deleted)"), std::string::npos) << line;
  }
  EXPECT_GE(segments, 1);
}

TEST(SharedMemory, TooLittleForSoManyRanksIsRefusedOnAllOfThem) {
  EXPECT_EQ(NodeSegment::Make(MPI_COMM_WORLD, 64), nullptr);
  EXPECT_NE(NodeSegment::Make(MPI_COMM_WORLD, 1 << 20), nullptr);
}

TEST(SharedMemory, ASlotIsWrittenAgainWhenAllOthersHaveReadIt) {
  const auto segment = NodeSegment::Make(MPI_COMM_WORLD, 1 << 20);
  ASSERT_NE(segment, nullptr);
  const CallFingerprint call = {.sequence = 1};
  const std::int64_t slots = segment->slots(), post = segment->TakePosts(1);
  EXPECT_EQ(segment->TakePosts(slots), post + 1);
  EXPECT_TRUE(segment->CanWrite(post));
  EXPECT_FALSE(segment->CanWrite(post + slots));
  MPI_Barrier(MPI_COMM_WORLD);
  if (segment->rank() == 0) segment->Publish(post, call);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_TRUE(segment->IsPublished(0, post, call));
  EXPECT_FALSE(segment->IsPublished(0, post + slots, call));
  EXPECT_FALSE(segment->IsPublished(1, post, call));
  for (int reader = 1; reader < segment->size(); ++reader) {
    EXPECT_TRUE(segment->rank() != 0 || !segment->CanWrite(post + slots));
    MPI_Barrier(MPI_COMM_WORLD);
    if (segment->rank() == reader) segment->MarkRead(0, post);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_TRUE(segment->rank() != 0 || segment->CanWrite(post + slots));
  MPI_Barrier(MPI_COMM_WORLD);
}

// Some ranks block in a broadcast before they wait for what they have started, others wait first. A long
// all-reduce has more rows than slots: it needs everybody's calls until its end.
TEST(SharedMemory, BlockingCollectivesLetOthersFinishFirst) {
  constexpr std::int64_t kCount = 6'000'011;
  for (const int blocks_first : {0, 1}) {
    std::vector<float> values(kCount, 1.0f);
    std::int64_t word[1] = {World().rank() == 0 ? 42 : 0};
    Work work = World().AllReduceAsync(BufferOf(absl::MakeSpan(values)));
    if (World().rank() % 2 == blocks_first) {
      World().Broadcast(BufferOf(absl::MakeSpan(word)), 0);
      work.Wait();
    } else {
      work.Wait();
      World().Broadcast(BufferOf(absl::MakeSpan(word)), 0);
    }
    EXPECT_EQ(word[0], 42);
    EXPECT_EQ(values[0], static_cast<float>(World().size()));
    EXPECT_EQ(values[kCount - 1], static_cast<float>(World().size()));
  }
}

TEST(SharedMemory, SplitLetsOthersFinishFirst) {
  std::vector<float> values(6'000'011, 1.0f);
  Work work = World().AllReduceAsync(BufferOf(absl::MakeSpan(values)));
  if (World().rank() % 2 == 0) work.Wait();
  const Communicator half = World().Split(World().rank() % 2, World().rank(), "half");
  work.Wait();
  EXPECT_EQ(values.back(), static_cast<float>(World().size()));
  half.Barrier();
}

}  // namespace
}  // namespace plait::comm
