// Compares placement policies on skewed loads, by running the planners alone.
#ifndef PLAIT_TOOLS_MOE_BENCH_PLACEMENT_TABLE_H_
#define PLAIT_TOOLS_MOE_BENCH_PLACEMENT_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

// A table with a row per placement for Zipf exponents 0.6, 1.0 and 1.4, and 32 and 256 experts on `ranks` ranks.
// `shadow` is planned for two link bandwidths, named in the table, unless --link-bytes-per-second gives one.
// INVALID_ARGUMENT if there are too few experts for --top. Local.
absl::StatusOr<std::string> PlacementTable(const Config& config, int ranks);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_PLACEMENT_TABLE_H_
