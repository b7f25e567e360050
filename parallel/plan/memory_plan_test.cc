// Plans against published bytes per parameter, and against sums by hand.
#include "parallel/plan/memory_plan.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace plait::parallel {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kRoot = 1024, kBlock = 4096, kBlocks = 5;
constexpr std::int64_t kAll = kRoot + kBlocks * kBlock;

// Nothing to pad.
MemoryPlanRequest Request(Strategy strategy, int ranks) {
  MemoryPlanRequest request = {.strategy = strategy, .shard_ranks = ranks};
  request.units.push_back({"root", kRoot, kRoot, true, ranks});
  for (int block = 0; block < kBlocks; ++block) {
    request.units.push_back({"block", kBlock, kBlock, false, ranks});
  }
  request.micro_batch = 8;
  request.activation_bytes_per_sample = 1000;
  request.fixed_activation_bytes = 300;
  return request;
}

// Rajbhandari et al., SC 2020, table 1, with float32 (4 + 4 + 8 bytes): what stays between steps.
TEST(MemoryPlan, HasTheBytesPerParameterOfZero) {
  constexpr double kN = kRanks;
  const std::pair<Strategy, double> expected[] = {
      {Strategy::kZero1, 8 + 8 / kN}, {Strategy::kZero2, 4 + 12 / kN}, {Strategy::kFsdp, 16 / kN}};
  for (const auto& [strategy, bytes] : expected) {
    const MemoryPlan plan = PlanMemory(Request(strategy, kRanks));
    EXPECT_EQ(plan.total_bytes() - plan.working_bytes - plan.activation_bytes, bytes * kAll)
        << Name(strategy);
  }
  for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    const MemoryPlan plan = PlanMemory(Request(strategy, 1));
    EXPECT_EQ(plan.total_bytes() - plan.activation_bytes, 16 * kAll) << "one rank shards nothing";
  }
}

TEST(MemoryPlan, CountsUnitsInWork) {
  EXPECT_EQ(PlanMemory(Request(Strategy::kZero1, kRanks)).working_bytes, 0);
  const std::int64_t gradients = 4 * (kRoot + 3 * kBlock);
  EXPECT_EQ(PlanMemory(Request(Strategy::kZero2, kRanks)).working_bytes, gradients);
  MemoryPlanRequest request = Request(Strategy::kFsdp, kRanks);
  EXPECT_EQ(PlanMemory(request).working_bytes, gradients + 4 * (kRoot + 2 * kBlock));
  request.prefetch = false;
  EXPECT_EQ(PlanMemory(request).working_bytes, gradients + 4 * (kRoot + kBlock));
  request.reshard_after_forward = false;
  EXPECT_EQ(PlanMemory(request).working_bytes, gradients + 4 * kAll);
  request.adds_unsharded_gradients = true;
  EXPECT_EQ(PlanMemory(request).working_bytes, 4 * kAll);
  EXPECT_EQ(PlanMemory(request).gradient_bytes, 4 * kAll + 4 * kAll / kRanks);
}

TEST(MemoryPlan, BuffersOfAnotherSizeAreNotUsedAgain) {
  MemoryPlanRequest request = Request(Strategy::kZero2, kRanks);
  request.units.push_back({"large", 3 * kBlock, 3 * kBlock, false, kRanks});
  EXPECT_EQ(PlanMemory(request).working_bytes, 4 * (kRoot + 3 * kBlock + 3 * kBlock));
}

TEST(MemoryPlan, MixedPrecisionKeepsAMaster) {
  for (const auto& [strategy, parameters, master] :
       {std::tuple{Strategy::kDdp, 2 * kAll, 4 * kAll}, std::tuple{Strategy::kZero1, 2 * kAll, kAll},
        std::tuple{Strategy::kFsdp, std::int64_t{0}, kAll}}) {
    MemoryPlanRequest request = Request(strategy, strategy == Strategy::kDdp ? 1 : kRanks);
    request.compute_type = at::kBFloat16;
    const MemoryPlan plan = PlanMemory(request);
    EXPECT_EQ(plan.parameter_bytes, parameters) << Name(strategy);
    EXPECT_EQ(plan.master_bytes, master) << Name(strategy);
  }
}

TEST(MemoryPlan, OptimizersDifferInMoments) {
  MemoryPlanRequest request = Request(Strategy::kZero1, kRanks);
  request.optimizer = OptimizerKind::kSgd;
  EXPECT_EQ(PlanMemory(request).moment_bytes, 0);
  request.momentum = true;
  EXPECT_EQ(PlanMemory(request).moment_bytes, 4 * kAll / kRanks);
  request.optimizer = OptimizerKind::kAdam;
  EXPECT_EQ(PlanMemory(request).moment_bytes, 8 * kAll / kRanks);
  request.moments_offload = OffloadTarget::kFile;
  EXPECT_EQ(PlanMemory(request).moment_bytes, 2 * 8 * kBlock / kRanks);
  // The root unit's 2048 bytes take a block of the file.
  EXPECT_EQ(PlanMemory(request).moment_file_bytes, kBlocks * 8 * kBlock / kRanks + 4096);
}

TEST(MemoryPlan, MastersInAFileAreTwoBuffers) {
  for (const auto& [strategy, parameters] :
       {std::pair{Strategy::kZero1, 2 * kAll}, std::pair{Strategy::kFsdp, 2 * kAll / kRanks}}) {
    MemoryPlanRequest request = Request(strategy, kRanks);
    request.compute_type = at::kBFloat16;
    request.masters_offload = OffloadTarget::kFile;
    const MemoryPlan plan = PlanMemory(request);
    EXPECT_EQ(plan.parameter_bytes, parameters) << Name(strategy);
    EXPECT_EQ(plan.master_bytes, 2 * 4 * kBlock / kRanks);
    EXPECT_EQ(plan.master_file_bytes, kBlocks * 4 * kBlock / kRanks + 4096);
    request.masters_offload = OffloadTarget::kHost;
    EXPECT_EQ(PlanMemory(request).master_bytes, 4 * kAll / kRanks);
    EXPECT_EQ(PlanMemory(request).master_file_bytes, 0);
    request.compute_type = at::kFloat;  // masters are the parameters
    EXPECT_EQ(PlanMemory(request).total_bytes(), PlanMemory(Request(strategy, kRanks)).total_bytes());
  }
}

TEST(MemoryPlan, OffloadedParametersAreBuffersAndUnitsInWork) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int ranks : {1, kRanks}) {
      MemoryPlanRequest request = Request(Strategy::kFsdp, ranks);
      request.compute_type = type;
      request.masters_offload = OffloadTarget::kFile;
      request.offloads_parameters = true;
      const MemoryPlan plan = PlanMemory(request);
      const auto c = static_cast<std::int64_t>(c10::elementSize(type));
      EXPECT_EQ(plan.parameter_bytes, 0);
      EXPECT_EQ(plan.master_bytes, 2 * 4 * kBlock / ranks);
      EXPECT_EQ(plan.master_file_bytes, kBlocks * 4 * kBlock / ranks + 4096);
      const std::int64_t gradients = ranks == 1 ? 0 : 4 * (kRoot + 3 * kBlock);
      EXPECT_EQ(plan.working_bytes, gradients + c * (kRoot + 2 * kBlock));
    }
  }
}

// As with as many ranks along ep as along dp_shard: each has its own experts, whole.
TEST(MemoryPlan, ExpertsAreSharedByTheRanksOfTheirOwnAxis) {
  constexpr std::int64_t kExperts = 65536, kLayers = 12, kOfLayers = 4 * kLayers * kExperts;
  MemoryPlanRequest request = Request(Strategy::kFsdp, 8);
  request.moments_offload = OffloadTarget::kFile;
  const MemoryPlan dense = PlanMemory(request);
  for (int i = 0; i < kLayers; ++i) request.units.push_back({"experts", kExperts, kExperts, false, 1});
  const MemoryPlan whole = PlanMemory(request);
  EXPECT_EQ(whole.parameter_bytes, kOfLayers);
  EXPECT_EQ(whole.master_bytes, dense.master_bytes);
  EXPECT_EQ(whole.gradient_bytes, dense.gradient_bytes + kOfLayers);
  EXPECT_EQ(whole.moment_bytes, 2 * 8 * kExperts);
  EXPECT_EQ(whole.working_bytes, dense.working_bytes);
  const std::string text = MemoryPlanText(whole);
  EXPECT_NE(text.find("  parameters             3.146 MB   float32, unsharded\n"), std::string::npos) << text;
  EXPECT_NE(text.find("MB   float32, sharded 1/8\n"), std::string::npos) << text;
  EXPECT_NE(text.find("MB   float32, sharded 1/8 and unsharded\n"), std::string::npos) << text;
  for (PlannedUnit& unit : request.units) unit.shard_ranks = unit.name == "experts" ? 2 : unit.shard_ranks;
  request.saves_asynchronously = true;
  const MemoryPlan halves = PlanMemory(request);
  EXPECT_EQ(halves.parameter_bytes, 0);
  EXPECT_EQ(halves.master_bytes, dense.master_bytes + kOfLayers / 2);
  EXPECT_EQ(halves.gradient_bytes, dense.gradient_bytes + kOfLayers / 2);
  EXPECT_EQ(halves.moment_bytes, 2 * 8 * kExperts / 2);
  EXPECT_EQ(halves.working_bytes, dense.working_bytes + 4 * (3 + 2) * kExperts);
  EXPECT_GE(halves.save_bytes, 3 * kOfLayers / 2);
}

TEST(MemoryPlan, UnitsArePaddedAsTheEngineDoes) {
  const auto parameter = [](std::vector<std::int64_t> sizes) { return at::empty(sizes, at::kMeta); };
  std::vector<models::ParameterUnit> units = {
      models::MakeUnit("a", {{"w", parameter({3, 5})}, {"b", parameter({5})}}),
      models::MakeUnit("none", {}, /*block=*/0), models::MakeUnit("experts", {{"e", parameter({3, 5})}}, 0)};
  units[2].shard_axis = "ep_shard";
  const std::vector<PlannedUnit> planned = PlanUnits(units, kRanks, /*expert_shard_ranks=*/2);
  EXPECT_EQ(planned[0].parameters, 20);
  EXPECT_EQ(planned[0].count, 64) << "16 for each, then shards of 16";
  EXPECT_TRUE(planned[0].root);
  EXPECT_EQ(planned[0].shard_ranks, kRanks);
  EXPECT_EQ(planned[1].count, 0);
  EXPECT_EQ(planned[2].count, 32) << "shards of 16";
  EXPECT_EQ(planned[2].shard_ranks, 2);
}

TEST(MemoryPlan, FindsTheLargestMicroBatch) {
  const MemoryPlan plan = PlanMemory(Request(Strategy::kFsdp, kRanks));
  EXPECT_EQ(plan.activation_bytes, 300 + 8 * 1000);
  EXPECT_EQ(LargestMicroBatch(plan, plan.total_bytes()), 8);
  EXPECT_EQ(LargestMicroBatch(plan, plan.total_bytes() - 1), 7);
  EXPECT_EQ(LargestMicroBatch(plan, plan.total_bytes() + 1000), 9);
  EXPECT_EQ(LargestMicroBatch(plan, 100), 0);
  MemoryPlan without = plan;
  without.request.activation_bytes_per_sample = 0;
  EXPECT_EQ(LargestMicroBatch(without, plan.total_bytes()), std::numeric_limits<std::int64_t>::max());
}

TEST(MemoryPlan, AnEvaluationMayTakeMore) {
  MemoryPlanRequest request = Request(Strategy::kFsdp, kRanks);
  request.evaluation_bytes = 5000;
  EXPECT_EQ(PlanMemory(request).activation_bytes, 300 + 8 * 1000);
  request.evaluation_bytes = 50'000'000;
  const MemoryPlan plan = PlanMemory(request);
  EXPECT_EQ(plan.activation_bytes, 50'000'000);
  EXPECT_NE(MemoryPlanText(plan).find("of evaluation"), std::string::npos);
  const absl::Status status = CheckFits(plan, {.bytes = 50'000'000, .limited_by = "x"}, 1);
  EXPECT_NE(status.message().find("evaluation takes 0.050 GB of it"), absl::string_view::npos) << status;
}

// The saver copies what a checkpoint keeps of this rank: master and moments of its shard. Values that live in
// a file are read into memory first, so that there are two copies at once.
TEST(MemoryPlan, AnAsynchronousSaveCopiesTheState) {
  constexpr std::int64_t kPage = std::int64_t{1} << 21;
  for (const auto& [strategy, ranks] : {std::pair{Strategy::kDdp, 1}, std::pair{Strategy::kZero1, kRanks},
                                        std::pair{Strategy::kFsdp, kRanks}}) {
    MemoryPlanRequest request = Request(strategy, ranks);
    for (int i = 0; i < 10000; ++i) request.units.push_back({"block", kBlock, kBlock, false, ranks});
    const std::int64_t share = (kAll + 10000 * kBlock) / ranks;
    const MemoryPlan without = PlanMemory(request);
    EXPECT_EQ(without.save_bytes, 0);
    request.saves_asynchronously = true;
    const MemoryPlan plan = PlanMemory(request);
    EXPECT_EQ(plan.save_bytes, (12 * share + kPage - 1) / kPage * kPage) << Name(strategy);
    EXPECT_EQ(plan.total_bytes(), without.total_bytes() + plan.save_bytes);
    EXPECT_EQ(plan.buffer_bytes(), without.buffer_bytes());
    EXPECT_NE(MemoryPlanText(plan).find("  checkpoint "), std::string::npos);
    request.optimizer = OptimizerKind::kSgd;
    EXPECT_EQ(PlanMemory(request).save_bytes, (4 * share + kPage - 1) / kPage * kPage);
    request.optimizer = OptimizerKind::kAdam;
    request.moments_offload = OffloadTarget::kFile;
    EXPECT_EQ(PlanMemory(request).save_bytes, (12 * share + kPage - 1) / kPage * kPage + 8 * share);
  }
}

TEST(MemoryPlan, SaysWhatDoesNotFitAndWhatWould) {
  const MemoryPlan plan = PlanMemory(Request(Strategy::kZero1, kRanks));
  const std::int64_t total = plan.total_bytes();
  EXPECT_TRUE(CheckFits(plan, {.bytes = 2 * total, .limited_by = "MemAvailable"}, 2).ok());
  EXPECT_TRUE(CheckFits(plan, {}, 2).ok());
  const absl::Status fewer = CheckFits(plan, {.bytes = 2 * total - 2, .limited_by = "MemAvailable"}, 2);
  EXPECT_EQ(fewer.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fewer.message(),
            "the run needs 0.000 GB on each rank, but only 0.000 GB are available (MemAvailable: 0.000 GB "
            "for 2 ranks): "
            "at most 7 samples per rank and pass fit");
  MemoryPlanRequest larger = Request(Strategy::kZero1, kRanks);
  for (int i = 0; i < 20; ++i) larger.units.push_back({"block", kBlock, kBlock, false, kRanks});
  const MemoryPlan large = PlanMemory(larger);
  const auto message = [&](std::int64_t bytes) {
    return std::string(CheckFits(large, {.bytes = bytes, .limited_by = "x"}, 1).message());
  };
  EXPECT_NE(message(8 * 26 * kBlock).find("one sample would fit with strategy fsdp"), std::string::npos);
  EXPECT_NE(message(1000).find("not even one sample fits"), std::string::npos);
}

TEST(MemoryPlan, IsATableForPeople) {
  MemoryPlanRequest request = Request(Strategy::kFsdp, kRanks);
  request.compute_type = at::kBFloat16;
  request.moments_offload = OffloadTarget::kFile;
  EXPECT_EQ(MemoryPlanText(PlanMemory(request)),
            "Memory plan of a rank: 21504 parameters, fsdp, dp_replicate=1, dp_shard=4\n"
            "  master                 0.022 MB   float32, sharded 1/4\n"
            "  gradients              0.022 MB   float32, sharded 1/4\n"
            "  moments                0.016 MB   AdamW, float32, sharded 1/4; 0.045 MB in a file\n"
            "  unsharded units        0.072 MB   while they are used\n"
            "  activations            0.008 MB   8 samples per pass\n"
            "  total                  0.139 MB   and the program itself\n");
}

}  // namespace
}  // namespace plait::parallel
