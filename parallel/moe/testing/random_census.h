// Censuses and placements for tests, with zeros: experts and ranks without rows, ranks without replicas.
#ifndef PLAIT_PARALLEL_MOE_TESTING_RANDOM_CENSUS_H_
#define PLAIT_PARALLEL_MOE_TESTING_RANDOM_CENSUS_H_

#include <cstdint>

#include "parallel/moe/placement.h"

namespace plait::moe::testing {

// Up to `most` rows from a rank to an expert, a few experts with ten times as many.
Census RandomCensus(std::uint64_t seed, int ranks, int experts, std::int64_t most);
// Each rank has a replica of each expert of another home with this probability.
ExpertPlacement RandomPlacement(std::uint64_t seed, int ranks, int experts, double probability);

}  // namespace plait::moe::testing

#endif  // PLAIT_PARALLEL_MOE_TESTING_RANDOM_CENSUS_H_
