// Routing as benchmarks need it: expert ids of made-up tokens, balanced or skewed in eight ways.
//
//   const WorkloadOptions options = {.workload = Workload::kSpread, .seed = 1, .experts = 32, .ranks = 4, .k = 2};
//   const std::int64_t first = FirstToken(options, /*tokens_per_rank=*/8192, rank);
//   ExpertIds(options, step, first, FirstToken(options, 8192, rank + 1) - first);    // (tokens, k), row-major
//
// Named as in Megatron-LM's benchmark of token imbalance (NVIDIA/Megatron-LM#7488):
//
//   W0 balanced    every expert in turn, in an order that the step decides
//   W1 hot-set     hot_share of a token's first choices goes to an eighth of the experts
//   W2 hot-rank    the same for the home experts of one rank
//   W3 spread      the i-th of the experts, in an order that the seed decides, is chosen as 1 / i^zipf_exponent
//   W4 ragged      as balanced, but rank r has tokens in proportion to r: rank 0 has none
//   W5 zero-load   uniform, but expert 0 and the home experts of the last rank have no token
//   W6 rotating    as spread, and the order moves on by one expert each step
//   W7 burst       as hot-set in every eighth step (7, 15, ...), else balanced
//
// The k experts of a token differ; the second is drawn as the first, among those that are left. A function of
// (options, step, token index): the same however tokens are split over ranks. Local.
#ifndef PLAIT_PARALLEL_MOE_WORKLOADS_H_
#define PLAIT_PARALLEL_MOE_WORKLOADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::moe {

enum class Workload { kBalanced, kHotSet, kHotRank, kSpread, kRagged, kZeroLoad, kRotating, kBurst };
inline constexpr Workload kWorkloads[] = {Workload::kBalanced, Workload::kHotSet, Workload::kHotRank,
                                          Workload::kSpread,   Workload::kRagged, Workload::kZeroLoad,
                                          Workload::kRotating, Workload::kBurst};

struct WorkloadOptions {
  Workload workload = Workload::kBalanced;
  std::uint64_t seed = 0;
  int experts = 0;
  int ranks = 1;  // homes are those of ExpertPlacement(ranks, experts)
  int k = 2;
  double zipf_exponent = 1;
  double hot_share = 0.5;
};

// INVALID_ARGUMENT, one line: sizes that are not positive, k above the experts that may have tokens, a hot share
// outside (0, 1), an exponent outside [0, 20].
absl::Status Validate(const WorkloadOptions& options);
// "W0" or "balanced", and so on; INVALID_ARGUMENT that lists them for another text.
absl::Status ParseWorkload(const std::string& text, Workload* workload);
const char* Name(Workload workload);  // "balanced"

// The index among the tokens of all ranks of a rank's first one; for `rank` = ranks how many there are in all, which is
// ranks * tokens_per_rank. All ranks have tokens_per_rank, but for W4.
std::int64_t FirstToken(const WorkloadOptions& options, std::int64_t tokens_per_rank, int rank);

// (tokens, k), row-major, best first: experts of the tokens from `first_token` on.
std::vector<std::int64_t> ExpertIds(const WorkloadOptions& options, std::int64_t step,
                                    std::int64_t first_token, std::int64_t tokens);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_WORKLOADS_H_
