// Output lines of bench_moe, in the format of CCFuser's logs (Wang et al., PPoPP 2025), and their formulas.
//
//   STEP-3: step_time = 21.900640 ms, foward_time = 10.591584, backward_time = 11.208704, perf = 37.65 tflops.
//
// Times are milliseconds. README.md explains every field. Local.
#ifndef PLAIT_TOOLS_MOE_BENCH_LINES_H_
#define PLAIT_TOOLS_MOE_BENCH_LINES_H_

#include <cstdint>
#include <string>

#include "parallel/moe/pass_trace.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

// TFLOP/s of a rank whose experts compute `rows` rows, forward and backward:
// rows * model_dim * hidden_size * 2 * matrices * 3 * 1e-12 / seconds, that is 12 d h per row with two matrices, 18 d h
// with three (gated).
double TeraflopsPerSecond(double rows, const Config& config, double step_ms);

std::string ModelTree(const Config& config, int local_experts, int ranks);
// "[Benchmark] world_size = ..."
std::string BenchmarkLine(const Config& config, int local_experts, int ranks);
// Memory of the weights and gradients of a rank's experts, and of replicas if every slot is used. `expert_bytes`:
// weights of one expert, in config.type.
std::string MemoryLine(const Config& config, int local_experts, int ranks, std::int64_t expert_bytes);
std::string StepLine(int step, double step_ms, double forward_ms, double backward_ms, double teraflops);
std::string SummaryLine(double step_ms, double forward_ms, double backward_ms);

// A rank's values in a step.
struct RankLines {
  int rank = 0;
  std::int64_t blocks = 0, remote_blocks = 0;
  double planner_ms = 0;  // placement alone
  moe::PassTrace trace = {};
};
// A rank's lines of a step, each ending in a newline; without the phases of experts if `experts` is false.
std::string RankText(const RankLines& of, bool experts);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_LINES_H_
