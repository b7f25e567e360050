// The expected traffic and work of a placement, from the census and the tokens' experts alone. Measured bytes are
// compared with it. Local.
//
//   const std::int64_t rows = SentRows(placement, rank, ids, k);                     // of one rank
//   const Traffic traffic = TrafficOf({.ranks = ranks, .sent_rows = sum_over_ranks, ...});   // of all ranks
#ifndef PLAIT_TOOLS_MOE_BENCH_TRAFFIC_H_
#define PLAIT_TOOLS_MOE_BENCH_TRAFFIC_H_

#include <cstdint>

#include "absl/types/span.h"
#include "parallel/moe/placement.h"

namespace plait::moe_bench {

// Rows that `rank` sends: one per token and other rank that computes for it. `ids`: (tokens, k); -1: no expert.
std::int64_t SentRows(const moe::ExpertPlacement& placement, int rank, absl::Span<const std::int64_t> ids,
                      int k);

// Blocks of at most 64 rows of one source rank and one slot that a rank computes.
struct Blocks {
  std::int64_t all = 0;
  std::int64_t remote = 0;  // of these, with rows from other ranks
};
Blocks BlocksOf(const moe::ExpertPlacement& placement, const moe::Census& census, int rank);

// A step's sizes, over all ranks together.
struct TrafficFacts {
  int ranks = 1, chunks = 1, experts = 1;
  std::int64_t sent_rows = 0;    // of all ranks
  std::int64_t remote_rows = 0;  // rows to other ranks, counted once per expert (moe::LoadReport)
  std::int64_t row_bytes = 0;
  bool has_experts = true;        // false: rows only go there and back
  bool gate_learns = true;        // gradients of gate weights are sent too
  std::int64_t weight_bytes = 4;  // bytes of a gate weight
  int replicas = 0;
  std::int64_t expert_bytes = 0;
};
// In bytes.
struct Traffic {
  std::int64_t rows = 0;      // dispatch and combine, forward and backward
  std::int64_t places = 0;    // metadata: census, counts, indices and gate weights
  std::int64_t replicas = 0;  // weights to replicas, gradients back
  std::int64_t total() const { return rows + places + replicas; }
};
Traffic TrafficOf(const TrafficFacts& facts);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_TRAFFIC_H_
