#include "tools/moe_bench/traffic.h"

#include <set>
#include <vector>

#include "parallel/moe/load.h"

namespace plait::moe_bench {
namespace {

// The rank that computes each of a source's rows for an expert, in order.
std::vector<int> RanksOfRows(const moe::ExpertPlacement& placement, int source, int expert) {
  std::vector<int> ranks;
  for (const moe::RowShare& share : placement.shares(source, expert))
    ranks.insert(ranks.end(), share.rows, share.rank);
  return ranks;
}

}  // namespace

std::int64_t SentRows(const moe::ExpertPlacement& placement, int rank, absl::Span<const std::int64_t> ids,
                      int k) {
  std::vector<std::vector<int>> ranks(placement.experts());
  for (int expert = 0; expert < placement.experts(); ++expert)
    ranks[expert] = RanksOfRows(placement, rank, expert);
  std::vector<std::size_t> next(placement.experts());
  std::int64_t sent = 0;
  for (std::size_t token = 0; token < ids.size() / k; ++token) {
    std::set<int> to;
    for (const std::int64_t expert : ids.subspan(token * k, k)) {
      if (expert < 0) continue;
      to.insert(ranks[expert].empty() ? placement.home_rank(static_cast<int>(expert))
                                      : ranks[expert][next[expert]++]);
    }
    to.erase(rank);
    sent += static_cast<std::int64_t>(to.size());
  }
  return sent;
}

Blocks BlocksOf(const moe::ExpertPlacement& placement, const moe::Census& census, int rank) {
  constexpr std::int64_t kBlock = 64;
  Blocks blocks;
  const auto add = [&](int source, std::int64_t rows) {
    const std::int64_t count = (rows + kBlock - 1) / kBlock;
    blocks.all += count;
    if (source != rank) blocks.remote += count;
  };
  for (int source = 0; source < placement.ranks(); ++source) {
    for (int expert = 0; expert < placement.experts(); ++expert) {
      const auto shares = placement.shares(source, expert);
      if (shares.empty() && placement.home_rank(expert) == rank) add(source, census.at(source, expert));
      std::int64_t rows = 0;
      for (const moe::RowShare& share : shares) rows += share.rank == rank ? share.rows : 0;
      add(source, rows);
    }
  }
  return blocks;
}

Traffic TrafficOf(const TrafficFacts& f) {
  // Between each two ranks: a 32-bit count per expert and two more of the census, and two 64-bit counts per chunk. For
  // each row and expert: three 32-bit indices.
  constexpr std::int64_t kCensusBytes = 4, kCountBytes = 16, kPlaceBytes = 12;
  Traffic traffic;
  if (f.ranks == 1) return traffic;
  traffic.rows = 4 * f.sent_rows * f.row_bytes;
  traffic.places =
      std::int64_t{1} * f.ranks * (f.ranks - 1) * (kCensusBytes * (f.experts + 2) + kCountBytes * f.chunks) +
      f.remote_rows * kPlaceBytes;
  if (!f.has_experts) return traffic;
  traffic.places += f.remote_rows * f.weight_bytes * (f.gate_learns ? 2 : 1);
  traffic.replicas = moe::ReplicaBytes(f.replicas, f.expert_bytes);
  return traffic;
}

}  // namespace plait::moe_bench
