// Rates of this run's ranks, measured shortly before it, for the cost model.
#ifndef PLAIT_TOOLS_MOE_BENCH_CALIBRATION_H_
#define PLAIT_TOOLS_MOE_BENCH_CALIBRATION_H_

#include <string>

#include "parallel/moe/cost_model.h"
#include "tools/moe_bench/bench_layer.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

struct Calibration {
  moe::MoeCostModel cost;
  double processor_flops = 0;  // of the experts, per second of a rank's processor time; measured
  std::string text;            // a line of what was measured and what was given
};

// Collective. What a flag gives is not measured. The link by all-to-alls of all ranks, the experts by a forward and a backward
// pass on all ranks at once; the slowest rank counts, so that all ranks have the same rates and make the same plans.
Calibration Calibrate(const Config& config, int local_experts, const BenchRanks& ranks);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_CALIBRATION_H_
