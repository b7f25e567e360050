// The results of a configuration: the numbers of all ranks, step by step, and the lines at its end.
//
//   StepReport report(config, local_experts, ranks);
//   PLAIT_ASSIGN_OR_RETURN(const StepNumbers numbers, CombineRanks(config, step, sizes, facts, ranks));   // collective
//   if (step >= config.warmup) report.Add(numbers);
//   std::fputs(report.Text().c_str(), stdout);
#ifndef PLAIT_TOOLS_MOE_BENCH_STEP_REPORT_H_
#define PLAIT_TOOLS_MOE_BENCH_STEP_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/moe_bench/bench_layer.h"
#include "tools/moe_bench/traffic.h"

namespace plait::moe_bench {

// A step's numbers over all ranks; the same on all of them.
struct StepNumbers {
  double step_ms = 0, forward_ms = 0, backward_ms = 0;  // of the rank with the longest step
  // Each the maximum over ranks; permutation_ms is of forward and backward together.
  double attention_ms = 0, planner_ms = 0, gate_ms = 0, census_ms = 0, places_ms = 0, permutation_ms = 0;
  // Processor time of experts: the busiest rank's in forward plus the busiest rank's in backward; the mean over ranks;
  // and the cost model's prediction, which the caller sets.
  double critical_ms = 0, mean_rank_ms = 0, predicted_critical_ms = 0;
  std::int64_t routed_rows = 0, computed_rows = 0;  // by all ranks
  std::int64_t sent_rows = 0;
  std::int64_t sent_bytes = 0;  // counted by the communicator
  Traffic traffic = {};         // expected, by formula
  moe::LoadReport load = {};
  std::optional<moe::LoadReport> stale_load = {};
  moe::LoadReport home_load = {};
  moe::MoeSeconds predicted = {}, predicted_home = {};

  // TFLOP/s per rank, with the mean number of rows; 0 in dispatch_only.
  double Teraflops(const Config& config, int ranks) const;
};

// Collective. `sizes`: the entries that are the same in all steps. INTERNAL, the same on all ranks, if rows were lost,
// computed twice, or sent another number of times than necessary (not checked if ranks relay rows of other nodes).
absl::StatusOr<StepNumbers> CombineRanks(const Config& config, int step, const TrafficFacts& sizes,
                                         const StepFacts& facts, const BenchRanks& ranks);

class StepReport {
 public:
  StepReport(const Config& config, int local_experts, const BenchRanks& ranks)
      : config_(config), local_experts_(local_experts), ranks_(ranks) {}
  void Add(const StepNumbers& step) { steps_.push_back(step); }
  // The summary in CCFuser's format, then the lines that it does not have. Requires at least one step.
  std::string Text() const;

 private:
  double Mean(double (*of)(const StepNumbers&)) const;
  double Median(double StepNumbers::*of) const;
  std::string LoadText() const;
  std::string HomeText() const;
  std::string BytesText() const;
  std::string OverheadText() const;
  std::string TimeText() const;
  std::string CriticalPathText() const;

  const Config& config_;
  int local_experts_;
  const BenchRanks& ranks_;
  std::vector<StepNumbers> steps_;
};

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_STEP_REPORT_H_
