// What each placement makes of skewed loads, from the planners alone.
#ifndef PLAIT_TOOLS_MOE_BENCH_PLACEMENT_TABLE_H_
#define PLAIT_TOOLS_MOE_BENCH_PLACEMENT_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/moe_bench/config.h"

namespace plait::moe_bench {

// Zipf exponents 0.6, 1.0 and 1.4, 32 and 256 experts on `ranks` ranks: a line of the table for each placement. Local.
// `shadow` plans for two links, which the text names, unless a flag gives one. InvalidArgument where the experts are too few.
absl::StatusOr<std::string> PlacementTable(const Config& config, int ranks);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_PLACEMENT_TABLE_H_
