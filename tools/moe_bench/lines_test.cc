// Exact formats against lines of a published log, and the formula against its figures.
#include "tools/moe_bench/lines.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace plait::moe_bench {
namespace {

TEST(Lines, PerfIsThatOfPublishedLogs) {
  // 8192 tokens for two experts of 1024 x 4096: 0.824633720832 TFLOP; 37.116943 ms are 22.22 TFLOP/s.
  const Config config;
  EXPECT_NEAR(TeraflopsPerSecond(16384, config, 1e3), 0.824633720832, 1e-12);
  EXPECT_NEAR(TeraflopsPerSecond(16384, config, 37.116943), 22.22, 0.005);
  EXPECT_NEAR(TeraflopsPerSecond(16384, config, 22.140160), 37.25, 0.005);
  // Half of the rows, half of the work; a gated expert has three matrices.
  EXPECT_NEAR(TeraflopsPerSecond(8192, config, 1e3), 0.824633720832 / 2, 1e-12);
  Config gated;
  gated.gated = true;
  EXPECT_NEAR(TeraflopsPerSecond(16384, gated, 1e3), 0.824633720832 * 1.5, 1e-12);
}

TEST(Lines, AreThoseThatParsersKnow) {
  EXPECT_EQ(StepLine(0, 37.116943, 16.876465, 19.885056, 22.2172),
            "STEP-0: step_time = 37.116943 ms, foward_time = 16.876465, backward_time = 19.885056, perf = "
            "22.22 tflops.\n");
  EXPECT_EQ(
      SummaryLine(21.337, 10.1299, 11.1),
      "[Summary] Average synchronized step_time = 21.337000 ms, forward = 10.129900, backward = 11.100000\n");
  Config config;
  config.top = 3;
  config.dtype = "bfloat16";
  config.chunks = 4;
  EXPECT_EQ(
      BenchmarkLine(config, 8, 4),
      "[Benchmark] world_size = 4, dtype = bfloat16, model_dim = 1024, hidden_size = 4096, samples = 8192, "
      "num_local_experts = 8, topK = 3, a2a_ffn_overlap_degree = 4, device = `cpu`\n");
}

TEST(Lines, TheTreeShowsSlots) {
  Config config;
  const std::string tree = ModelTree(config, 8, 4);
  EXPECT_NE(tree.find("      (gate): Linear(in_features=1024, out_features=32, bias=True)\n"),
            std::string::npos)
      << tree;
  EXPECT_NE(
      tree.find(
          "(htoh4): GroupedLinear(num_expert=14, in_features=1024, out_features=4096, bias=True, rank=0)\n"),
      std::string::npos)
      << tree;
  EXPECT_NE(
      tree.find(
          "(h4toh): GroupedLinear(num_expert=14, in_features=4096, out_features=1024, bias=True, rank=0)\n"),
      std::string::npos)
      << tree;
  // More slots than other ranks have experts stay empty.
  EXPECT_NE(ModelTree(config, 2, 2).find("num_expert=4, in_features=1024"), std::string::npos);
  // Without replicas there are no slots for them; a gated expert has one more matrix and another activation.
  config.gated = true;
  config.placement = moe::PlacementPolicy::kHome;
  const std::string home = ModelTree(config, 8, 4);
  EXPECT_EQ(home.find("num_expert=14"), std::string::npos) << home;
  EXPECT_NE(home.find("(gate): GroupedLinear(num_expert=8, in_features=1024, out_features=4096"),
            std::string::npos)
      << home;
  EXPECT_NE(home.find("(activation): SiLU()"), std::string::npos) << home;
}

TEST(Lines, MemoryOfGradientsOfHomeExpertsIsThatOfMasters) {
  const auto line = [](Mode mode, c10::ScalarType type) {
    Config config;
    config.mode = mode;
    config.type = type;
    return MemoryLine(config, /*local_experts=*/8, /*ranks=*/4, /*expert_bytes=*/1'000'000);
  };
  const auto expected = [](const char* home, const char* replicas) {
    return absl::StrCat("[Memory] weights and gradients of a rank: home experts = ", home,
                        ".000000 MB, replicas at most = ", replicas, ".000000 MB\n");
  };
  EXPECT_EQ(line(Mode::kTrainingStep, c10::kFloat), expected("16", "12"));
  EXPECT_EQ(line(Mode::kTrainingStep, c10::kBFloat16), expected("24", "12"));
  EXPECT_EQ(line(Mode::kForwardBackward, c10::kBFloat16), expected("16", "12"));
  EXPECT_EQ(line(Mode::kDispatchOnly, c10::kBFloat16), expected("0", "0"));
}

TEST(Lines, OfARank) {
  RankLines of = {.rank = 2, .blocks = 312, .remote_blocks = 83, .planner_ms = 0.25};
  of.trace.forward = {.gate = 1e-3,
                      .census = 2e-3,
                      .places = 4e-3,
                      .replicas = 1e-3,
                      .permutation = 2e-3,
                      .dispatch = 3e-3,
                      .experts = 4e-3,
                      .combine = 5e-3};
  of.trace.backward = {
      .replicas = 6e-3, .permutation = 7e-3, .dispatch = 8e-3, .experts = 9e-3, .combine = 1e-2};
  const std::string head =
      "start\nblock_info 312 83\n"
      "cpu:2 process time:7.250000, a: 1.000000, b: 2.000000, c: 0.250000, d: 4.000000\n"
      "2 wait time: 7.250\n312\n";
  EXPECT_EQ(RankText(of, false), head);
  EXPECT_EQ(RankText(of, true), head +
                                    "forward:  15.000\n"
                                    "2 forward phases: replicas: 1.000, dispatch: 3.000, permutation: 2.000, "
                                    "experts: 4.000, combine: 5.000\n"
                                    "2 backward phases: replicas: 6.000, dispatch: 8.000, permutation: "
                                    "7.000, experts: 9.000, combine: 10.000\n");
}

}  // namespace
}  // namespace plait::moe_bench
