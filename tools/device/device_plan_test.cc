// Which device ranks get, for made-up nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/device/device.h"

namespace plait::device {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankFacts OnNode(const std::string& host, int gpus, DeviceKind kind = DeviceKind::kAuto) {
  return {.request = {.kind = kind}, .host = host, .node = host + " boot", .gpus = gpus, .cores = 8};
}

std::vector<int> GpusOf(const std::vector<RankFacts>& ranks) {
  std::vector<int> gpus;
  const absl::StatusOr<std::vector<DevicePlan>> plans = PlanDevices(ranks);
  EXPECT_TRUE(plans.ok()) << plans.status();
  for (const DevicePlan& plan : plans.value_or(std::vector<DevicePlan>())) {
    gpus.push_back(plan.gpu);
    EXPECT_EQ(plan.cuda(), plan.gpu >= 0);
    EXPECT_EQ(plan.device().is_cuda(), plan.cuda());
  }
  return gpus;
}

std::string WarningOf(const std::vector<RankFacts>& ranks) { return PlanDevices(ranks)->at(0).warning; }

std::string ErrorOf(const std::vector<RankFacts>& ranks, absl::StatusCode code) {
  const absl::Status status = PlanDevices(ranks).status();
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  return std::string(status.message());
}

std::vector<int> ThreadsOf(const std::vector<RankFacts>& ranks) {
  std::vector<int> threads;
  const absl::StatusOr<std::vector<DevicePlan>> plans = PlanDevices(ranks);
  for (const DevicePlan& plan : *plans) threads.push_back(plan.threads);
  return threads;
}

TEST(DeviceKind, ParsesItsNames) {
  EXPECT_EQ(*ParseDeviceKind("auto"), DeviceKind::kAuto);
  EXPECT_EQ(*ParseDeviceKind("cpu"), DeviceKind::kCpu);
  EXPECT_EQ(*ParseDeviceKind("cuda"), DeviceKind::kCuda);
  EXPECT_THAT(std::string(ParseDeviceKind("gpu").status().message()),
              HasSubstr("--device=gpu: expected auto, cpu or cuda"));
}

TEST(PlanDevices, AutoGivesTheIthRankOfANodeItsIthGpu) {
  const std::vector<RankFacts> ranks = {OnNode("a", 2), OnNode("b", 4), OnNode("a", 2), OnNode("b", 4)};
  EXPECT_THAT(GpusOf(ranks), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(WarningOf(ranks), IsEmpty());
}

TEST(PlanDevices, NodesOfOneNameAreTwoNodes) {
  std::vector<RankFacts> ranks = {OnNode("a", 1), OnNode("a", 1)};
  ranks[1].node = "a other boot";
  EXPECT_THAT(GpusOf(ranks), ElementsAre(0, 0));
}

TEST(PlanDevices, AutoWithoutGpusIsCpuWithoutAWord) {
  const std::vector<RankFacts> ranks = {OnNode("a", 0), OnNode("a", 0)};
  EXPECT_THAT(GpusOf(ranks), ElementsAre(-1, -1));
  EXPECT_THAT(WarningOf(ranks), IsEmpty());
}

TEST(PlanDevices, AutoIsCpuForAllRanksUnlessAllHaveAGpu) {
  const std::vector<RankFacts> crowded = {OnNode("a", 2), OnNode("a", 2), OnNode("a", 2)};
  EXPECT_THAT(GpusOf(crowded), ElementsAre(-1, -1, -1));
  EXPECT_THAT(WarningOf(crowded), HasSubstr("GPUs are not used: a has 3 ranks but only 2 visible GPUs;"));
  const std::vector<RankFacts> mixed = {OnNode("a", 2), OnNode("b", 0)};
  EXPECT_THAT(GpusOf(mixed), ElementsAre(-1, -1));
  EXPECT_THAT(WarningOf(mixed), HasSubstr("LibTorch finds no GPU on b (rank 1)"));
}

TEST(PlanDevices, AutoSaysWhyGpusAreNotSeen) {
  std::vector<RankFacts> ranks = {OnNode("a", 0), OnNode("b", 0)};
  ranks[1].obstacle = "libtorch_cuda.so: no such file";
  ranks[0].obstacle = ranks[1].obstacle;
  EXPECT_THAT(GpusOf(ranks), ElementsAre(-1, -1));
  EXPECT_THAT(WarningOf(ranks), HasSubstr("finds no GPU on a (rank 0): libtorch_cuda.so: no such file"));
}

TEST(PlanDevices, CpuLeavesGpusAlone) {
  EXPECT_THAT(GpusOf({OnNode("a", 1, DeviceKind::kCpu)}), ElementsAre(-1));
  EXPECT_THAT(WarningOf({OnNode("a", 1, DeviceKind::kCpu)}), IsEmpty());
}

TEST(PlanDevices, CudaNeedsAGpuPerRank) {
  const auto needs = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(ErrorOf({OnNode("a", 0, DeviceKind::kCuda)}, needs),
              AllOf(HasSubstr("--device=cuda: LibTorch finds no GPU on a (rank 0);"),
                    HasSubstr("or use --device=cpu")));
  EXPECT_THAT(ErrorOf({OnNode("a", 1, DeviceKind::kCuda), OnNode("a", 1, DeviceKind::kCuda)}, needs),
              HasSubstr("--device=cuda: a has 2 ranks but only 1 visible GPU;"));
  EXPECT_THAT(GpusOf({OnNode("a", 2, DeviceKind::kCuda), OnNode("a", 2, DeviceKind::kCuda)}),
              ElementsAre(0, 1));
}

TEST(PlanDevices, HonoursCudaVisibleDevices) {
  std::vector<RankFacts> ranks = {OnNode("a", 1), OnNode("a", 1)};
  // One list for all ranks.
  ranks[0].visible = ranks[1].visible = "5";
  EXPECT_THAT(GpusOf(ranks), ElementsAre(-1, -1));
  ranks[0].gpus = ranks[1].gpus = 2;
  ranks[0].visible = ranks[1].visible = "5,3";
  EXPECT_THAT(GpusOf(ranks), ElementsAre(0, 1));
  // The launcher has given each rank a GPU of its own.
  ranks[0].gpus = ranks[1].gpus = 1;
  ranks[0].visible = "3";
  ranks[1].visible = "GPU-8932f937";
  EXPECT_THAT(GpusOf(ranks), ElementsAre(0, 0));
}

// Each rank sees one GPU, under the same number.
TEST(PlanDevices, TellsHiddenGpusApart) {
  std::vector<RankFacts> ranks = {OnNode("a", 1, DeviceKind::kCuda), OnNode("a", 1, DeviceKind::kCuda)};
  ranks[0].visible = ranks[1].visible = "0";
  ranks[0].ids = {"8932f937"};
  ranks[1].ids = {"d0c1a6b4"};
  EXPECT_THAT(GpusOf(ranks), ElementsAre(0, 0));
  ranks[1].ids = ranks[0].ids;
  EXPECT_THAT(ErrorOf(ranks, absl::StatusCode::kFailedPrecondition),
              HasSubstr("a has 2 ranks but only 1 visible GPU;"));
  // One of them may be used under two numbers.
  ranks[0].gpus = 2;
  ranks[0].ids = {"d0c1a6b4", "8932f937"};
  ranks[1].ids = {"d0c1a6b4"};
  EXPECT_THAT(ErrorOf(ranks, absl::StatusCode::kFailedPrecondition),
              HasSubstr("ranks 0 and 1 on a would share GPU 0"));
}

TEST(PlanDevices, TwoRanksNeverShareAGpu) {
  std::vector<RankFacts> ranks = {OnNode("a", 2, DeviceKind::kCuda), OnNode("a", 1, DeviceKind::kCuda)};
  ranks[0].visible = "1,0";
  ranks[1].visible = "1";
  EXPECT_THAT(ErrorOf(ranks, absl::StatusCode::kFailedPrecondition),
              HasSubstr("ranks 0 and 1 on a would share GPU 1"));
}

TEST(PlanDevices, RanksHaveTheSameFlags) {
  std::vector<RankFacts> ranks = {OnNode("a", 1), OnNode("b", 1, DeviceKind::kCpu)};
  EXPECT_THAT(ErrorOf(ranks, absl::StatusCode::kInvalidArgument),
              HasSubstr("rank 1 was started with --device=cpu --threads=0, rank 0 with --device=auto"));
  ranks[1].request = {.kind = DeviceKind::kAuto, .threads = 2};
  ErrorOf(ranks, absl::StatusCode::kInvalidArgument);
}

TEST(PlanDevices, ThreadsDefaultToTheNode) {
  std::vector<RankFacts> ranks = {OnNode("a", 0), OnNode("a", 0), OnNode("b", 0)};
  EXPECT_THAT(ThreadsOf(ranks), ElementsAre(1, 1, 8));
  ranks[2].omp_threads = 3;
  EXPECT_THAT(ThreadsOf(ranks), ElementsAre(1, 1, 3));
  for (RankFacts& facts : ranks) facts.request.threads = 2;
  EXPECT_THAT(ThreadsOf(ranks), ElementsAre(2, 2, 2));
}

}  // namespace
}  // namespace plait::device
