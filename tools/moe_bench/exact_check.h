// Whether experts on all ranks make the same bits as one process.
#ifndef PLAIT_TOOLS_MOE_BENCH_EXACT_CHECK_H_
#define PLAIT_TOOLS_MOE_BENCH_EXACT_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "parallel/moe/exchange.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

// Collective. Small integers and ReLU, so that every sum of float32 (or float64, where --dtype says so) is exact in any
// order: output and all gradients have to equal, bit for bit, a sum over all experts that one process makes. For every
// policy, for replicas of everything with rows shared in turn, with one chunk and with three. A line for the log; INTERNAL,
// the same on all ranks, names the first that differs.
absl::StatusOr<std::string> CheckExact(const Config& config, int local_experts,
                                       const moe::ExchangeRanks& ranks);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_EXACT_CHECK_H_
