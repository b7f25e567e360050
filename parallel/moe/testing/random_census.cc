#include "parallel/moe/testing/random_census.h"

#include "base/seed.h"

namespace plait::moe::testing {

Census RandomCensus(std::uint64_t seed, int ranks, int experts, std::int64_t most) {
  base::RandomStream stream(base::DeriveSeed(seed, "census"));
  Census census(ranks, experts);
  for (int expert = 0; expert < experts; ++expert) {
    const std::uint64_t kind = stream.Below(6);
    if (kind == 0) continue;
    for (int rank = 0; rank < ranks; ++rank) {
      census.at(rank, expert) = static_cast<std::int64_t>(stream.Below(most + 1)) * (kind == 1 ? 10 : 1);
    }
  }
  if (stream.Below(3) != 0) return census;
  const int empty = static_cast<int>(stream.Below(ranks));
  for (int expert = 0; expert < experts; ++expert) census.at(empty, expert) = 0;
  return census;
}

ExpertPlacement RandomPlacement(std::uint64_t seed, int ranks, int experts, double probability) {
  base::RandomStream stream(base::DeriveSeed(seed, "placement"));
  ExpertPlacement placement(ranks, experts);
  for (int expert = experts - 1; expert >= 0; --expert) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (placement.home_rank(expert) != rank && stream.Uniform() < probability)
        placement.AddReplica(expert, rank);
    }
  }
  return placement;
}

}  // namespace plait::moe::testing
