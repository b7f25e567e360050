#include "tools/moe_bench/lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/layer_text.h"

namespace plait::moe_bench {
namespace {

// All experts of a rank, its replica slots included.
std::string ExpertsText(std::int64_t count, std::int64_t in, std::int64_t out) {
  return absl::StrFormat("GroupedLinear(num_expert=%d, in_features=%d, out_features=%d, bias=True, rank=0)",
                         count, in, out);
}

std::string PhasesText(const char* direction, const moe::PassTrace::Phases& p) {
  return absl::StrFormat(
      "%s phases: replicas: %.3f, dispatch: %.3f, permutation: %.3f, experts: %.3f, combine: %.3f\n",
      direction, p.replicas * 1e3, p.dispatch * 1e3, p.permutation * 1e3, p.experts * 1e3, p.combine * 1e3);
}

}  // namespace

double TeraflopsPerSecond(double rows, const Config& config, double step_ms) {
  return rows * static_cast<double>(config.model_dim) * static_cast<double>(config.hidden_size) * 2 *
         config.matrices() * 3 * 1e-12 / (step_ms / 1e3);
}

std::string ModelTree(const Config& config, int local_experts, int ranks) {
  const std::int64_t dim = config.model_dim, hidden = config.hidden_size,
                     slots = local_experts + config.UsableSlots(local_experts, ranks);
  std::string attention;
  for (const char* name : {"q", "k", "v", "o"}) {
    absl::StrAppend(&attention, "    (linear_", name, "): ", models::LinearText(dim, dim, false), "\n");
  }
  const std::string gate =
      config.gated ? absl::StrCat("      (gate): ", ExpertsText(slots, dim, hidden), "\n") : std::string();
  return absl::StrCat(
      "MoeBenchmark(\n  (attn): MultiHeadSelfAttention(\n", attention,
      "  )\n  (_moe_layer): MoeLayer(\n    (gate): TopKGate(\n      (gate): ",
      models::LinearText(dim, std::int64_t{1} * local_experts * ranks, true),
      "\n    )\n    (experts): Experts(\n", "      (htoh4): ", ExpertsText(slots, dim, hidden), "\n", gate,
      "      (h4toh): ", ExpertsText(slots, hidden, dim),
      "\n      (activation): ", config.gated ? "SiLU()" : "GELU(approximate='none')", "\n    )\n  )\n)\n");
}

std::string BenchmarkLine(const Config& config, int local_experts, int ranks) {
  return absl::StrFormat(
      "[Benchmark] world_size = %d, dtype = %s, model_dim = %d, hidden_size = %d, samples = %d, "
      "num_local_experts = %d, "
      "topK = %d, a2a_ffn_overlap_degree = %d, device = `cpu`\n",
      ranks, config.dtype, config.model_dim, config.hidden_size, config.samples, local_experts, config.top,
      config.chunks);
}

std::string MemoryLine(const Config& config, int local_experts, int ranks, std::int64_t expert_bytes) {
  const int slots = config.UsableSlots(local_experts, ranks);
  const double weights = config.mode == Mode::kDispatchOnly ? 0 : 1e-6 * static_cast<double>(expert_bytes);
  // The engine adds up gradients in the masters' type.
  const bool widens = config.mode == Mode::kTrainingStep && config.type == c10::kBFloat16;
  const double gradients = widens ? 2 * weights : weights;
  return absl::StrFormat(
      "[Memory] weights and gradients of a rank: home experts = %.6f MB, replicas at most = %.6f MB\n",
      (weights + gradients) * local_experts, 2 * weights * slots);
}

std::string StepLine(int step, double step_ms, double forward_ms, double backward_ms, double teraflops) {
  return absl::StrFormat(
      "STEP-%d: step_time = %.6f ms, foward_time = %.6f, backward_time = %.6f, perf = %.2f tflops.\n", step,
      step_ms, forward_ms, backward_ms, teraflops);
}

std::string SummaryLine(double step_ms, double forward_ms, double backward_ms) {
  return absl::StrFormat(
      "[Summary] Average synchronized step_time = %.6f ms, forward = %.6f, backward = %.6f\n", step_ms,
      forward_ms, backward_ms);
}

std::string RankText(const RankLines& of, bool experts) {
  const moe::PassTrace::Phases& p = of.trace.forward;
  const double a = p.gate * 1e3, b = p.census * 1e3, c = of.planner_ms, d = p.places * 1e3;
  std::string text = absl::StrFormat("start\nblock_info %d %d\n", of.blocks, of.remote_blocks);
  absl::StrAppendFormat(&text, "cpu:%d process time:%.6f, a: %.6f, b: %.6f, c: %.6f, d: %.6f\n", of.rank,
                        a + b + c + d, a, b, c, d);
  absl::StrAppendFormat(&text, "%d wait time: %.3f\n%d\n", of.rank, a + b + c + d, of.blocks);
  if (!experts) return text;
  const double forward = p.replicas + p.dispatch + p.permutation + p.experts + p.combine;
  absl::StrAppendFormat(&text, "forward:  %.3f\n", forward * 1e3);
  return absl::StrCat(text, of.rank, " ", PhasesText("forward", p), of.rank, " ",
                      PhasesText("backward", of.trace.backward));
}

}  // namespace plait::moe_bench
