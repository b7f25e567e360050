// Devices of real ranks, on a machine with or without GPUs.
#include "tools/device/device.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "comm/testing/world.h"

namespace plait::device {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SelectDevice, SetsTheThreadsOfLibTorch) {
  const comm::Communicator& world = comm::testing::World();
  const absl::StatusOr<DevicePlan> plan = SelectDevice({.kind = DeviceKind::kCpu, .threads = 2}, world);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->device().is_cpu());
  EXPECT_EQ(at::get_num_threads(), 2);
}

// The facts travel between ranks as text: everything that a plan depends on must arrive.
TEST(SelectDevice, RanksSeeEachOther) {
  const comm::Communicator& world = comm::testing::World();
  unsetenv("OMP_NUM_THREADS");
  const absl::StatusOr<DevicePlan> shared = SelectDevice({.kind = DeviceKind::kCpu}, world);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->threads, world.size() > 1 ? 1 : DetectRankFacts({}).cores);
  const int own_threads = world.rank() + 1;
  const absl::StatusOr<DevicePlan> differing =
      SelectDevice({.kind = DeviceKind::kCpu, .threads = own_threads}, world);
  ASSERT_EQ(differing.ok(), world.size() == 1);
  if (world.size() > 1) {
    EXPECT_THAT(std::string(differing.status().message()),
                HasSubstr("rank 1 was started with --device=cpu "
                          "--threads=2, rank 0 with --device=cpu"));
  }
}

// The kind, the GPU and the warning or error of each rank, by rank, as text.
std::vector<std::string> Decisions(DeviceKind kind, const std::vector<int>& gpus_of_ranks) {
  const comm::Communicator& world = comm::testing::World();
  RankFacts mine = {.request = {.kind = kind}, .host = "a", .node = "a boot"};
  mine.gpus = gpus_of_ranks[static_cast<std::size_t>(world.rank())];
  const absl::StatusOr<DevicePlan> plan = AgreeOnDevice(mine, world);
  return comm::GatherText(world, plan.ok() ? absl::StrCat(plan->device().str(), " ", plan->warning)
                                           : std::string(plan.status().message()));
}

TEST(AgreeOnDevice, IsOneDecisionOfAllRanks) {
  if (comm::testing::World().size() == 1) {
    EXPECT_THAT(Decisions(DeviceKind::kAuto, {1}), ElementsAre("cuda:0 "));
    EXPECT_THAT(Decisions(DeviceKind::kAuto, {0}), ElementsAre("cpu "));
    return;
  }
  EXPECT_THAT(Decisions(DeviceKind::kAuto, {2, 2}), ElementsAre("cuda:0 ", "cuda:1 "));
  EXPECT_THAT(Decisions(DeviceKind::kCuda, {2, 2}), ElementsAre("cuda:0 ", "cuda:1 "));
  EXPECT_THAT(Decisions(DeviceKind::kCpu, {2, 2}), ElementsAre("cpu ", "cpu "));
  EXPECT_THAT(Decisions(DeviceKind::kAuto, {0, 0}), ElementsAre("cpu ", "cpu "));
  // One rank without a GPU, whichever, decides for all.
  for (const std::vector<int>& gpus : {std::vector<int>{2, 0}, {0, 2}, {1, 1}}) {
    const std::vector<std::string> chosen = Decisions(DeviceKind::kAuto, gpus);
    EXPECT_THAT(chosen, Each(AllOf(StartsWith("cpu GPUs are not used: "), chosen[0])));
    const std::vector<std::string> refused = Decisions(DeviceKind::kCuda, gpus);
    EXPECT_THAT(refused, Each(AllOf(StartsWith("--device=cuda: "), refused[0])));
  }
}

TEST(AgreeOnDevice, IdsTellGpusApart) {
  const comm::Communicator& world = comm::testing::World();
  const RankFacts mine = {.request = {.kind = DeviceKind::kCuda},
                          .host = "a",
                          .node = "a boot",
                          .gpus = 1,
                          .visible = "0",
                          .ids = {absl::StrCat("gpu of rank ", world.rank())}};
  const absl::StatusOr<DevicePlan> plan = AgreeOnDevice(mine, world);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->gpu, 0);
}

TEST(SelectDevice, CudaWithoutGpusIsAnErrorOnAllRanks) {
  if (DetectRankFacts({}).gpus > 0) return;  // of another machine
  const absl::Status status = SelectDevice({.kind = DeviceKind::kCuda}, comm::testing::World()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(rank 0)"));
}

TEST(DetectRankFacts, ReadsTheEnvironment) {
  setenv("OMP_NUM_THREADS", "4,2", 1);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(DetectRankFacts({}).omp_threads, 4);
  setenv("OMP_NUM_THREADS", "many", 1);
  EXPECT_EQ(DetectRankFacts({}).omp_threads, 0);
  EXPECT_GE(DetectRankFacts({}).cores, 1);
}

}  // namespace
}  // namespace plait::device
