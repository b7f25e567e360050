// What the conformance suite does not test: that shared memory is used, and that sums are bitwise identical in
// different operations.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/mpi/node_segment.h"
#include "comm/testing/world.h"
#include "comm/transport_error.h"

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

// The sum in rank order.
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

TEST(SharedMemory, ALimitOnTheSizeOfFilesLeavesMessages) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Communicator limited = World().Split(0, World().rank(), "limited");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::vector<float> ones(1000, 1);
  limited.AllReduce(BufferOf(absl::MakeSpan(ones)));
  EXPECT_EQ(ones, std::vector<float>(1000, static_cast<float>(World().size())));
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
  EXPECT_EQ(NodeSegment::Make(MPI_COMM_WORLD, 64, false), nullptr);
  EXPECT_NE(NodeSegment::Make(MPI_COMM_WORLD, 1 << 20, true), nullptr);
}

TEST(SharedMemory, ASlotIsWrittenAgainWhenAllOthersHaveReadIt) {
  const auto segment = NodeSegment::Make(MPI_COMM_WORLD, 1 << 20, true);
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

TEST(SharedMemory, APostIsTheReadersUntilAllHaveReadIt) {
  const auto segment = NodeSegment::Make(MPI_COMM_WORLD, 1 << 20, true);
  ASSERT_NE(segment, nullptr);
  const std::int64_t post = segment->TakePosts(1);
  for (int reader = 1; reader < segment->size(); ++reader) {
    EXPECT_TRUE(segment->rank() != 0 || !segment->HasBeenRead(post));
    MPI_Barrier(MPI_COMM_WORLD);
    if (segment->rank() == reader) segment->MarkRead(0, post);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_TRUE(segment->rank() != 0 || segment->HasBeenRead(post));
  EXPECT_FALSE(segment->HasBeenRead(post + segment->slots()));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedMemory, MemoryThatIsNotThereIsAnError) {
  const auto segment = NodeSegment::Make(MPI_COMM_WORLD, 1 << 20, true);
  ASSERT_NE(segment, nullptr);
  EXPECT_FALSE(NodeSegment::Make(MPI_COMM_WORLD, 1 << 20, false)->reads_peers());
  if (!segment->reads_peers()) return;  // the kernel does not let them
  const std::byte* nowhere = nullptr;
  char byte = 0;
  EXPECT_THROW(segment->ReadFrom((World().rank() + 1) % World().size(), nowhere + 64, &byte, 1),
               TransportError);
}

// An operation is not complete, so its buffer may not be overwritten, before the other ranks have read the values.
TEST(SharedMemory, ValuesStayUntilTheOthersHaveThem) {
  const std::int64_t part = 70'001;
  for (int round = 0; round < 50; ++round) {
    std::vector<float> mine(part, static_cast<float>(World().rank() + round)), all(part * World().size());
    if (World().rank() == round % World().size()) usleep(300);
    World().AllGather(ConstBufferOf(absl::MakeConstSpan(mine)), BufferOf(absl::MakeSpan(all)));
    mine.assign(part, -1.0f);
    for (int rank = 0; rank < World().size(); ++rank) {
      EXPECT_EQ(all[part * rank], static_cast<float>(rank + round));
      EXPECT_EQ(all[part * (rank + 1) - 1], static_cast<float>(rank + round));
    }
  }
}

}  // namespace
}  // namespace plait::comm
