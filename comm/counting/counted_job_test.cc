// A counted rank's statistics compared with those of real ranks, and what its calls return.
#include "comm/counting/counted_job.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "comm/gathered_text.h"

namespace plait::comm {
namespace {

constexpr int kRanks = 6, kRows = 3;

const OperationStats& Of(const Communicator& comm, Operation operation) {
  return comm.stats().at(comm.name())[static_cast<int>(operation)];
}

TEST(CountedJob, GroupsHaveTheSizesOfTheirNames) {
  const CountedJob job(kRanks, {{"rows", {kRows, 2 * kRows}}});
  const Communicator world = job.World(4);
  EXPECT_EQ(world.rank(), 4);
  EXPECT_EQ(world.size(), kRanks);
  const Communicator rows = world.Split(/*color=*/1, /*key=*/2, "rows");
  EXPECT_EQ(rows.rank(), 2);
  EXPECT_EQ(rows.size(), kRows);
  EXPECT_EQ(world.Split(1, 2, "rows").size(), 2 * kRows);
  EXPECT_EQ(world.Split(1, 2, "rows").size(), 2 * kRows);
  EXPECT_EQ(rows.Split(0, 1, "rows").rank(), 1);
  EXPECT_EQ(rows.Split(0, 1, "rows").size(), kRows);
  EXPECT_EQ(rows.Split(0, 1, "rows_of_shapes").size(), kRows);
  EXPECT_EQ(world.Split(0, 4, "world").size(), kRanks);
  EXPECT_EQ(world.Split(-1, 0, "unknown").size(), 1);
  EXPECT_DEATH(world.Split(0, 0, "unknown"), "no size for the group \"unknown\"");
  EXPECT_DEATH(rows.Split(0, kRows, "rows"), "key 3 in the group \"rows\" of 3 ranks");
  EXPECT_DEATH(rows.Split(0, 0, "columns"), "no size for the group \"columns\"");
}

// Lower bounds of the bytes that each rank sends: Thakur et al., IJHPCA 19 (2005).
TEST(CountedJob, CountsTheBytesOfRealRanks) {
  const CountedJob job(kRanks, {});
  const Communicator world = job.World(1);
  const Buffer meta = {nullptr, 12 * kRanks, DataType::kFloat32};
  world.AllReduce(meta);
  EXPECT_EQ(Of(world, Operation::kAllReduce).wire_bytes, 2 * 48 * (kRanks - 1));
  world.AllGatherAsync({nullptr, 12, DataType::kFloat32}, meta).Wait();
  EXPECT_EQ(Of(world, Operation::kAllGather).wire_bytes, 48 * (kRanks - 1));
  world.ReduceScatter(meta, {nullptr, 12, DataType::kFloat32});
  EXPECT_EQ(Of(world, Operation::kReduceScatter).wire_bytes, 48 * (kRanks - 1));
  world.Send(meta, 2, 0);
  world.Receive(meta, 0, 0);
  EXPECT_EQ(Of(world, Operation::kSend).wire_bytes, 48 * kRanks);
  EXPECT_EQ(Of(world, Operation::kReceive).wire_bytes, 0);
  EXPECT_EQ(Of(world, Operation::kReceive).calls, 1);
}

TEST(CountedJob, OthersBringWhatOneBrings) {
  const CountedJob job(kRanks, {});
  const Communicator world = job.World(1);
  EXPECT_EQ(GatherText(world, "text"), std::vector<std::string>(kRanks, "text"));
  EXPECT_TRUE(world.Agree(absl::OkStatus()).ok());
  EXPECT_EQ(world.Agree(absl::InternalError("mine")).message(), "mine");
  std::vector<std::int64_t> value = {7};
  world.AllReduce(BufferOf(absl::MakeSpan(value)));
  EXPECT_EQ(value[0], 7);
}

TEST(CountedJob, ABarrierIsCompleteAtOnce) {
  const CountedJob job(kRanks, {});
  Work barrier = job.World(1).BarrierAsync();
  EXPECT_TRUE(barrier.Test());
  barrier.Wait();
}

TEST(CountedJob, PartsOfAnAllToAllAreWhatOneHasForItself) {
  const CountedJob job(3, {});
  const Communicator world = job.World(1);
  std::vector<std::int32_t> parts = {1, 2, 3, 4, 5, 6}, received(6);
  world.AllToAll(ConstBufferOf(absl::MakeConstSpan(parts)), BufferOf(absl::MakeSpan(received)));
  EXPECT_EQ(received, (std::vector<std::int32_t>{3, 4, 3, 4, 3, 4}));
  world.AllToAllV(ConstBufferOf(absl::MakeConstSpan(parts)), {3, 2, 1}, BufferOf(absl::MakeSpan(received)),
                  {2, 2, 2});
  EXPECT_EQ(received, (std::vector<std::int32_t>{4, 5, 4, 5, 4, 5}));
}

TEST(CountedJob, MessagesAreTheLatestOfTheirSize) {
  const CountedJob job(kRanks, {});
  const std::vector<std::int64_t> sent = {1, 2};
  job.World(0).Send(ConstBufferOf(absl::MakeConstSpan(sent)), 1, 0);
  std::vector<std::int64_t> received(2), longer(3);
  job.World(1).Receive(BufferOf(absl::MakeSpan(received)), 0, 5);
  EXPECT_EQ(received, sent);
  EXPECT_DEATH(job.World(1).Receive(BufferOf(absl::MakeSpan(longer)), 0, 0),
               "24 bytes that no rank has sent");
}

TEST(CountedJob, RealRanksTakeNoMetaBuffers) {
  EXPECT_DEATH(Communicator::Self().AllReduce({nullptr, 3, DataType::kFloat32}), "without memory");
}

}  // namespace
}  // namespace plait::comm
