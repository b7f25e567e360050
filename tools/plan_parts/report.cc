#include "tools/plan_parts/report.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "parallel/plan/step_time.h"

namespace plait::planning {
namespace {

using parallel::AxisTraffic;
using parallel::Estimate;

constexpr double kGiga = 1e9;

double TokensPerSecond(double samples_per_second, std::int64_t sequence) {
  return samples_per_second * static_cast<double>(sequence);
}

std::vector<AxisTraffic> TrafficOfRank0(const Estimate& estimate, const parallel::PlannedModel& model) {
  if (!estimate.traffic.empty()) return estimate.traffic;
  const auto plan = parallel::StepPlan::Make(model, estimate.run);
  return plan.ok() ? TrafficOf(*plan, {}) : std::vector<AxisTraffic>();
}

// "tp 1.2 GB, dp_shard 0.3 GB": sent by rank 0 in a step.
std::string SentText(const std::vector<AxisTraffic>& traffic) {
  std::vector<std::pair<std::string, std::int64_t>> axes;
  for (const AxisTraffic& t : traffic) {
    if (axes.empty() || axes.back().first != t.axis) axes.push_back({t.axis, 0});
    axes.back().second += t.wire_bytes;
  }
  return absl::StrJoin(axes, ", ", [](std::string* out, const auto& axis) {
    absl::StrAppend(out, axis.first, " ", base::FormatQuantity(static_cast<double>(axis.second), "bytes"));
  });
}

std::string FitText(const Estimate& estimate, const parallel::Cluster& cluster) {
  if (estimate.fits) return "fits";
  const double over = static_cast<double>(estimate.memory.total_bytes()) - cluster.memory_bytes;
  return absl::StrFormat("%.3g GB over", over / kGiga);
}

// Unequal parts come from a batch of all ranks.
std::string BatchText(const parallel::PlannedRun& run) {
  const std::int64_t equal = run.micro_batches * run.micro_batch * run.mesh.data_ranks();
  if (run.step_samples == 0 || run.step_samples == equal) {
    return absl::StrCat(" --batch-size=", run.micro_batch);
  }
  return absl::StrCat(" --global-batch-size=", run.step_samples / run.micro_batches);
}

std::string StrategyText(const parallel::PlannedRun& run) {
  return absl::StrCat(Name(run.strategy), run.sequence_parallel ? "+sp" : "",
                      run.reduce_each_micro_batch ? "*" : "");
}

}  // namespace

std::string HeadingText(const parallel::PlannedModel& model, std::int64_t parameters,
                        const parallel::Cluster& cluster) {
  std::vector<std::string> rates;
  for (const auto& [type, flops] : cluster.flops) {
    rates.push_back(absl::StrFormat("%s %.4g TFLOP/s", type, flops / 1e12));
  }
  return absl::StrCat(
      "model     ", model.name, ", ", base::FormatCount(parameters), " parameters, ", model.blocks,
      " blocks of width ", model.width, ", sequences of ", model.sequence, "\ncluster   ", cluster.nodes,
      " x ", cluster.ranks_per_node, " ranks",
      absl::StrFormat(" of %.4g GB, %s; %.4g GB/s in a node, %.4g GB/s between nodes",
                      cluster.memory_bytes / kGiga, absl::StrJoin(rates, ", "),
                      cluster.within_node.bytes_per_second / kGiga,
                      cluster.between_nodes.bytes_per_second / kGiga),
      cluster.processors_per_node < cluster.ranks_per_node
          ? absl::StrCat("; ", cluster.processors_per_node, " processors for the ranks of a node")
          : "",
      "\n");
}

std::string TableText(const std::vector<Estimate>& estimates, std::size_t top,
                      const parallel::PlannedModel& model, const parallel::Cluster& cluster) {
  std::string text = absl::StrFormat("%4s  %-44s %-9s %12s %9s %-13s %11s %10s  %s\n", "", "mesh", "strategy",
                                     "micro-batch", "GB/rank", "", "ms/step", "tokens/s", "a rank sends");
  for (std::size_t i = 0; i < std::min(top, estimates.size()); ++i) {
    const Estimate& e = estimates[i];
    absl::StrAppendFormat(
        &text, "%4d  %-44s %-9s %12s %9.3f %-13s %11.2f %10s  %s\n", i + 1, ToText(e.run.mesh),
        StrategyText(e.run), absl::StrCat(e.run.micro_batches, " x ", e.run.micro_batch),
        static_cast<double>(e.memory.total_bytes()) / kGiga, FitText(e, cluster), 1e3 * e.time.total(),
        base::FormatQuantity(TokensPerSecond(e.samples_per_second(), model.sequence)),
        SentText(TrafficOfRank0(e, model)));
  }
  return text;
}

std::string ExplanationText(const Estimate& estimate, const parallel::PlannedModel& model) {
  std::string text = absl::StrCat("\n", FlagsText(estimate.run), "\n\n", MemoryPlanText(estimate.memory),
                                  "\nRank 0 sends in a step:\n");
  for (const AxisTraffic& t : TrafficOfRank0(estimate, model)) {
    absl::StrAppendFormat(&text, "  %-14s %-16s %8d calls %18s bytes\n", t.axis, comm::Name(t.operation),
                          t.calls, base::FormatCount(t.wire_bytes));
  }
  absl::StrAppend(&text, "\nTime of a step (parallel/plan/step_time.h has the formulas):\n",
                  StepTimeText(estimate.time));
  return text;
}

std::string AdviceText(const parallel::Advice& advice) {
  std::string text = absl::StrCat("\nAdvice: ", advice.choice, ".\n");
  for (const std::string& reason : advice.reasons) absl::StrAppend(&text, "  - ", reason, "\n");
  if (advice.decision == parallel::Decision::kOffload || advice.decision == parallel::Decision::kTiling)
    return text;
  if (!advice.best.has_value()) return absl::StrCat(text, "  ", advice.why_none, "\n");
  const Estimate& best = *advice.best;
  absl::StrAppendFormat(&text, "  Its quickest mesh that fits, %.4g ms a step:\n    %s\n",
                        1e3 * best.time.total(), FlagsText(best.run));
  return text;
}

std::string FlagsText(const parallel::PlannedRun& run) {
  std::string text = absl::StrCat("--nproc=", run.mesh.ranks());
  if (run.mesh.ranks() > 1) absl::StrAppend(&text, " --mesh=", ToText(run.mesh));
  absl::StrAppend(&text, " --strategy=", Name(run.strategy),
                  run.sequence_parallel ? " --sequence-parallel" : "", BatchText(run));
  if (run.micro_batches > 1) absl::StrAppend(&text, " --gradient-accumulation-steps=", run.micro_batches);
  if (run.reduce_each_micro_batch) absl::StrAppend(&text, " --reduce-each-micro-batch");
  if (!run.reshard_after_forward) absl::StrAppend(&text, " --no-reshard-after-forward");
  if (!run.prefetch) absl::StrAppend(&text, " --no-prefetch");
  if (run.mesh.cp > 1 && run.context == context_parallel::ContextKind::kUlysses) {
    absl::StrAppend(&text, " --context-attention=ulysses");
  }
  // On one rank of pp, too, a backward in two parts takes other memory.
  if (run.mesh.pp > 1 || run.schedule != parallel::ScheduleKind::k1F1B) {
    absl::StrAppend(&text, " --pipeline-schedule=", Name(run.schedule));
  }
  if (run.chunks > 0) absl::StrAppend(&text, " --pipeline-chunks=", run.chunks);
  if (run.compute_type != at::kFloat)
    absl::StrAppend(&text, " --dtype=", parallel::TypeName(run.compute_type));
  return text;
}

}  // namespace plait::planning
