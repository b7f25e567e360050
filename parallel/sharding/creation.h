// What DataParallel::Create checks before memory is touched. Private to parallel/sharding.
#ifndef PLAIT_PARALLEL_SHARDING_CREATION_H_
#define PLAIT_PARALLEL_SHARDING_CREATION_H_

#include <vector>

#include "absl/status/status.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

// Collective over both axes; the same answer on all ranks.
absl::Status CheckUnits(const DataParallelAxes& axes, const std::vector<ParameterUnit>& units,
                        const DataParallelOptions& options, bool initializes);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_CREATION_H_
