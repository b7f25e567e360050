// The global norm of gradients, bitwise identical on any mesh. Private to parallel/sharding.
#ifndef PLAIT_PARALLEL_SHARDING_REPRODUCIBLE_NORM_H_
#define PLAIT_PARALLEL_SHARDING_REPRODUCIBLE_NORM_H_

#include <vector>

#include "comm/communicator.h"
#include "parallel/sharding/shard.h"

namespace plait::parallel {

// Collective over `world`. The 2-norm of all primary gradients, which must be on CPU. Squares of FlatLayout::kAlignment
// elements, which no shard boundary separates, are added in float64 in a fixed order; these sums are added exactly
// (base/exact_sum.h).
double ReproducibleNorm(const std::vector<Shard>& shards, const comm::Communicator& world);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_REPRODUCIBLE_NORM_H_
