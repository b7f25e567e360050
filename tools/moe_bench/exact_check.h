// Checks that experts distributed over all ranks are bitwise identical to a single process.
#ifndef PLAIT_TOOLS_MOE_BENCH_EXACT_CHECK_H_
#define PLAIT_TOOLS_MOE_BENCH_EXACT_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "parallel/moe/exchange.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

// Collective. Uses small integers and ReLU, so that every sum in float32 (float64 with --dtype=float64) is exact in any
// order: output and all gradients must equal, bitwise, those of one process that sums over all experts. Checks every
// policy, and replicas of all experts everywhere with rows shared in turn, each with one and with three chunks. Returns
// a line for the log. INTERNAL, the same on all ranks, names the first difference.
absl::StatusOr<std::string> CheckExact(const Config& config, int local_experts,
                                       const moe::ExchangeRanks& ranks);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_EXACT_CHECK_H_
