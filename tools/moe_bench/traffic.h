// What a placement has to send and to compute, counted from the census and the tokens' experts alone.
//
//   const std::int64_t rows = SentRows(placement, rank, ids, k);         // of one rank
//   const Traffic traffic = TrafficOf(..., {.sent_rows = sum of all ranks ...});
//
// Measured bytes are compared with it. Local.
#ifndef PLAIT_TOOLS_MOE_BENCH_TRAFFIC_H_
#define PLAIT_TOOLS_MOE_BENCH_TRAFFIC_H_

#include <cstdint>

#include "absl/types/span.h"
#include "parallel/moe/placement.h"

namespace plait::moe_bench {

// Tokens times the other ranks that compute something for them: rows as they travel. `ids` (tokens, k), -1: none.
std::int64_t SentRows(const moe::ExpertPlacement& placement, int rank, absl::Span<const std::int64_t> ids,
                      int k);

// Blocks of at most 64 rows of one source and one slot that a rank computes.
struct Blocks {
  std::int64_t all = 0;
  std::int64_t remote = 0;  // of them, from other ranks
};
Blocks BlocksOf(const moe::ExpertPlacement& placement, const moe::Census& census, int rank);

// Of a step, all ranks together.
struct TrafficFacts {
  int ranks = 1, chunks = 1, experts = 1;
  std::int64_t sent_rows = 0;    // of all ranks
  std::int64_t remote_rows = 0;  // once per expert: LoadReport
  std::int64_t row_bytes = 0;
  bool has_experts = true;        // else rows alone go there and back
  bool gate_learns = true;        // gradients of weights travel too
  std::int64_t weight_bytes = 4;  // of a gate's weight
  int replicas = 0;
  std::int64_t expert_bytes = 0;
};
struct Traffic {
  std::int64_t rows = 0;      // dispatch, combine, and both for the gradients
  std::int64_t places = 0;    // where rows go: census, counts, numbers and weights
  std::int64_t replicas = 0;  // weights and gradients
  std::int64_t total() const { return rows + places + replicas; }
};
Traffic TrafficOf(const TrafficFacts& facts);

}  // namespace plait::moe_bench

#endif  // PLAIT_TOOLS_MOE_BENCH_TRAFFIC_H_
