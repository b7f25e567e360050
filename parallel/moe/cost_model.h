// Predicts the time of a mixture-of-experts layer, and when a replica pays off.
//
//   const MoeCostModel cost = {.link_bytes_per_second = 20e9, .rank_flops_per_second = 300e12, .width = 1024, .hidden = 4096};
//   PredictSeconds(cost, LoadOfRanks(census, placement)).total();
//
// With d the width, h an expert's hidden size, b bytes per element, n = 2 weight matrices (gated: 3), forward and
// backward of a micro-batch take
//
//   compute    6 n d h FLOPs for each row of the rank with the most rows (forward 2 n d h, backward twice that)
//   exchange   4 times (dispatch, combine, their gradients): d b bytes for each row that the busiest rank sends or
//              receives, and ranks - 1 latencies
//   replicas   1 + 1 / m times (gradients for each micro-batch, weights once for the m micro-batches that use them):
//              n d h b bytes for each replica that the busiest rank sends or receives, and a latency for each
//
// A rank sends and receives at the same time; nothing overlaps with computation. So a replica moves (1 + 1 / m) n d h b
// bytes per micro-batch, and each row that it keeps local saves 4 d b: in bytes it pays off if the rank sends the
// expert more than (1 + 1 / m) n h / 4 rows, that is h (gated: 1.5 h) with one micro-batch, and half of that with many.
// Biases, gate and permutation are neglected.
#ifndef PLAIT_PARALLEL_MOE_COST_MODEL_H_
#define PLAIT_PARALLEL_MOE_COST_MODEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "parallel/moe/load.h"

namespace plait::moe {

struct MoeCostModel {
  double link_bytes_per_second = 0;  // per rank and direction
  double latency_seconds = 0;        // per message
  double rank_flops_per_second = 0;  // achieved in the experts' products
  std::int64_t width = 0, hidden = 0;
  bool gated = false;
  int element_bytes = 4;
  int micro_batches =
      1;  // that use a replica once it is fetched: the remaining ones of the step, this one included

  double row_flops() const { return 3.0 * 2 * matrices() * static_cast<double>(width * hidden); }
  double row_bytes() const { return static_cast<double>(width * element_bytes); }
  double replica_bytes() const { return static_cast<double>(matrices() * width * hidden * element_bytes); }
  int matrices() const { return gated ? 3 : 2; }
};
// INVALID_ARGUMENT, one line, if a rate or size is not positive and finite, or the latency is negative or not finite.
absl::Status Validate(const MoeCostModel& cost);

struct MoeSeconds {
  double compute = 0, exchange = 0, replicas = 0;
  double total() const { return compute + exchange + replicas; }
};
// Time of one micro-batch, forward and backward, including its part of fetching replicas. `ranks`: LoadOfRanks.
MoeSeconds PredictSeconds(const MoeCostModel& cost, absl::Span<const RankLoad> ranks);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_COST_MODEL_H_
