#include "tools/moe_bench/run.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "tools/device/device.h"
#include "tools/moe_bench/bench_layer.h"
#include "tools/moe_bench/calibration.h"
#include "tools/moe_bench/exact_check.h"
#include "tools/moe_bench/lines.h"
#include "tools/moe_bench/step_report.h"
#include "tools/training/agreement.h"

namespace plait::moe_bench {
namespace {

void Print(const BenchRanks& ranks, const std::string& text) {
  if (ranks.world.rank() != 0) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void PrintStart(const Config& config, int local_experts, const BenchRanks& ranks) {
  const int size = ranks.world.size();
  std::string text;
  for (int rank = 0; rank < size; ++rank) absl::StrAppend(&text, "cpu\n");
  for (int rank = 0; rank < size; ++rank) absl::StrAppend(&text, "rank: ", rank, ", nranks: ", size, "\n");
  Print(ranks, absl::StrCat(text, ModelTree(config, local_experts, size),
                            BenchmarkLine(config, local_experts, size)));
}

absl::Status RunConfiguration(const Config& config, int local_experts, const BenchRanks& ranks) {
  const int size = ranks.world.size();
  PrintStart(config, local_experts, ranks);
  if (config.exact) {
    PLAIT_ASSIGN_OR_RETURN(const std::string exact, CheckExact(config, local_experts, ranks.experts));
    Print(ranks, exact);
  }
  const Calibration calibration = Calibrate(config, local_experts, ranks);
  Print(ranks, calibration.text);
  BenchLayer layer(config, local_experts, ranks, calibration.cost);
  Print(ranks, MemoryLine(config, local_experts, size, layer.expert_bytes()));
  const TrafficFacts sizes = {.ranks = size,
                              .chunks = config.chunks,
                              .experts = local_experts * size,
                              .row_bytes = static_cast<std::int64_t>(calibration.cost.row_bytes()),
                              .has_experts = config.mode != Mode::kDispatchOnly,
                              .gate_learns = layer.gate_learns(),
                              .weight_bytes = config.type == c10::kDouble ? 8 : 4,
                              .expert_bytes = layer.expert_bytes()};
  StepReport report(config, local_experts, ranks);
  for (int step = 0; step < config.num_steps; ++step) {
    PLAIT_ASSIGN_OR_RETURN(const StepFacts facts, layer.Step(step));
    PLAIT_ASSIGN_OR_RETURN(StepNumbers numbers, CombineRanks(config, step, sizes, facts, ranks));
    numbers.predicted_critical_ms =
        1e3 * facts.predicted.compute * calibration.cost.rank_flops_per_second / calibration.processor_flops;
    if (step < config.rank_lines) {
      const bool experts = config.mode != Mode::kDispatchOnly;
      for (const std::string& text : comm::GatherText(ranks.world, RankText(facts.lines, experts)))
        Print(ranks, text);
    }
    Print(ranks, StepLine(step, numbers.step_ms, numbers.forward_ms, numbers.backward_ms,
                          numbers.Teraflops(config, size)));
    if (step >= config.warmup) report.Add(numbers);
  }
  Print(ranks, report.Text());
  return absl::OkStatus();
}

}  // namespace

absl::Status Run(const Config& config, comm::Session& session) {
  const device::DeviceRequest request = {.kind = device::DeviceKind::kCpu, .threads = config.threads};
  PLAIT_RETURN_IF_ERROR(training::AgreeOnSettings(session.world(), config.values));
  PLAIT_RETURN_IF_ERROR(device::SelectDevice(request, session.world()).status());
  const BenchRanks ranks(session.world());
  session.EnterSteps();
  for (const int local_experts : config.local_experts) {
    PLAIT_RETURN_IF_ERROR(RunConfiguration(config, local_experts, ranks));
  }
  return absl::OkStatus();
}

}  // namespace plait::moe_bench
