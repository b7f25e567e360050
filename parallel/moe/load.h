// How evenly a placement distributes the rows of a census, and how many rows are sent to other ranks.
//
//   const LoadReport report = ReportLoad(census, placement);
//   report.overload_factor;    // 1.08: the busiest rank computes 8 % more rows than the mean
//
// A row is one of the k experts of a token. Rows count as sent once per expert, although the exchange sends a token
// once per rank or node (exchange.h): a census does not tell which experts share a token. Local.
#ifndef PLAIT_PARALLEL_MOE_LOAD_H_
#define PLAIT_PARALLEL_MOE_LOAD_H_

#include <cstdint>
#include <vector>

#include "parallel/moe/placement.h"

namespace plait::moe {

struct RankLoad {
  std::int64_t rows = 0;            // that the rank computes
  std::int64_t sent_rows = 0;       // to other ranks in the dispatch; received from them in the combine
  std::int64_t received_rows = 0;   // from other ranks in the dispatch
  int replicas = 0;                 // on this rank
  int replicas_of_its_experts = 0;  // replicas of its home experts, on other ranks

  friend bool operator==(const RankLoad&, const RankLoad&) = default;
};
// By rank.
std::vector<RankLoad> LoadOfRanks(const Census& census, const ExpertPlacement& placement);

// If there are no rows, nothing is overloaded, all experts are dead and diversity is 0.
struct LoadReport {
  double overload_factor = 1;  // rows of the busiest rank / mean of the ranks
  double balancedness = 1;     // its inverse
  double max_violation =
      0;  // MaxVio: rows of the busiest expert / mean of the experts - 1 (Wang et al., arXiv:2408.15664)
  double diversity =
      0;  // exp(H) / experts, H the entropy of experts' shares of the rows: 1 where all are equal
  int dead_experts = 0;  // without a row
  std::int64_t rows = 0;
  std::int64_t remote_rows = 0;  // computed on another rank than their token's
  int replicas = 0;              // on all ranks
};
LoadReport ReportLoad(const Census& census, const ExpertPlacement& placement);

// Bytes that all ranks send for `replicas` replicas: their weights once, and their gradients once.
inline std::int64_t ReplicaBytes(int replicas, std::int64_t expert_bytes) {
  return 2 * replicas * expert_bytes;
}

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_LOAD_H_
