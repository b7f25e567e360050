// Runs bench_moe: every configuration, on all ranks.
#ifndef PLAIT_TOOLS_MOE_BENCH_RUN_H_
#define PLAIT_TOOLS_MOE_BENCH_RUN_H_

#include "absl/status/status.h"
#include "comm/session.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

// Collective. Prints on rank 0.
absl::Status Run(const Config& config, comm::Session& session);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_RUN_H_
