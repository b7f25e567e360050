// What a configuration came to: the numbers of all ranks, step by step, and the lines at its end.
//
//   StepReport report(config, ranks);
//   PLAIT_ASSIGN_OR_RETURN(const StepNumbers step, CombineRanks(config, layer, facts, ranks));   // collective
//   if (step >= warmup) report.Add(step);
//   fputs(report.Text());
#ifndef PLAIT_TOOLS_MOE_BENCH_STEP_REPORT_H_
#define PLAIT_TOOLS_MOE_BENCH_STEP_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/moe_bench/bench_layer.h"
#include "tools/moe_bench/traffic.h"

namespace plait::moe_bench {

// Of all ranks; the same on all of them.
struct StepNumbers {
  double step_ms = 0, forward_ms = 0, backward_ms = 0;  // of the rank with the longest step
  // Of the slowest rank each; `permutation` forward and backward.
  double attention_ms = 0, planner_ms = 0, gate_ms = 0, census_ms = 0, places_ms = 0, permutation_ms = 0;
  // Processor time of experts, forward and backward: the busiest rank's, each, which the others wait for; the mean of the ranks;
  // and by the cost model.
  double critical_ms = 0, mean_rank_ms = 0, predicted_critical_ms = 0;
  std::int64_t routed_rows = 0, computed_rows = 0;  // by all ranks
  std::int64_t sent_rows = 0;
  std::int64_t sent_bytes = 0;  // as the communicator counted them
  Traffic traffic = {};         // as they have to be
  moe::LoadReport load = {};
  std::optional<moe::LoadReport> stale_load = {};
  moe::LoadReport home_load = {};
  moe::MoeSeconds predicted = {}, predicted_home = {};

  // TFLOP/s of a rank, in the mean of the ranks.
  double Teraflops(const Config& config, int ranks) const;
};

// Collective. INTERNAL, the same on all ranks, where rows were lost, computed twice, or sent more often than they have to be.
absl::StatusOr<StepNumbers> CombineRanks(const Config& config, int step, const TrafficFacts& sizes,
                                         const StepFacts& facts, const BenchRanks& ranks);

class StepReport {
 public:
  StepReport(const Config& config, const BenchRanks& ranks) : config_(config), ranks_(ranks) {}
  void Add(const StepNumbers& step) { steps_.push_back(step); }
  // The summary as CCFuser prints it, then what it does not count. At least one step.
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
  const BenchRanks& ranks_;
  std::vector<StepNumbers> steps_;
};

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_STEP_REPORT_H_
