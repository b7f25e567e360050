// Measures link and compute rates before a run, for the cost model.
#ifndef PLAIT_TOOLS_MOE_BENCH_CALIBRATION_H_
#define PLAIT_TOOLS_MOE_BENCH_CALIBRATION_H_

#include <string>

#include "parallel/moe/cost_model.h"
#include "tools/moe_bench/bench_layer.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

struct Calibration {
  moe::MoeCostModel cost;
  double processor_flops = 0;  // FLOP/s of a rank's experts in processor time; always measured
  std::string text;            // the line "[Calibration] ..."
};

// Collective. Measures the rates that no flag gives: the link by all-to-alls among all ranks, the experts by a forward
// and a backward pass on all ranks at once. Times are those of the slowest rank, so that all ranks get the same rates
// and make the same plans.
Calibration Calibrate(const Config& config, int local_experts, const BenchRanks& ranks);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_CALIBRATION_H_
