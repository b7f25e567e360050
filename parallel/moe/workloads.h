// Synthetic routing for benchmarks: expert ids of tokens, in eight balanced or skewed distributions.
//
//   const WorkloadOptions options = {.workload = Workload::kSpread, .seed = 1, .experts = 32, .ranks = 4, .k = 2};
//   const std::int64_t first = FirstToken(options, /*tokens_per_rank=*/8192, rank);
//   ExpertIds(options, step, first, FirstToken(options, 8192, rank + 1) - first);    // (tokens, k), row-major
//
// Named as in Megatron-LM's benchmark of token imbalance (NVIDIA/Megatron-LM#7488):
//
//   W0 balanced    round-robin over the experts, in an order that depends on the step
//   W1 hot-set     an eighth of the experts gets hot_share of the first choices
//   W2 hot-rank    the home experts of one rank get hot_share of the first choices
//   W3 spread      Zipf: the i-th expert, in an order that depends on the seed, has probability ~ 1 / i^zipf_exponent
//   W4 ragged      as balanced, but the number of tokens of rank r is proportional to r: rank 0 has none
//   W5 zero-load   uniform, but expert 0 and the home experts of the last rank get no tokens
//   W6 rotating    as spread, but the order is rotated by one expert each step
//   W7 burst       as hot-set in every eighth step (7, 15, ...), else balanced
//
// The k experts of a token are drawn without replacement. A function of (options, step, token index): independent of
// how tokens are split over ranks. Local.
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

// INVALID_ARGUMENT, one line, if a size is not positive, k exceeds the experts that may get tokens, hot_share is not in
// (0, 1), or zipf_exponent is not in [0, 20].
absl::Status Validate(const WorkloadOptions& options);
// "W0" or "balanced", and so on; INVALID_ARGUMENT, listing them, for another text.
absl::Status ParseWorkload(const std::string& text, Workload* workload);
const char* Name(Workload workload);  // "balanced"

// The index of a rank's first token among the tokens of all ranks; for `rank` = ranks their total number, ranks *
// tokens_per_rank. Every rank has tokens_per_rank, except for W4.
std::int64_t FirstToken(const WorkloadOptions& options, std::int64_t tokens_per_rank, int rank);

// (tokens, k), row-major, best first: experts of the tokens [first_token, first_token + tokens).
std::vector<std::int64_t> ExpertIds(const WorkloadOptions& options, std::int64_t step,
                                    std::int64_t first_token, std::int64_t tokens);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_WORKLOADS_H_
