// Distributes each expert's rows over its copies, so that the ranks' loads are as equal as the placement allows.
//
//   ShareRows(census, Sharing::kLocalFirst, placement);    // placement.shares(source, expert)
//
// The placement may have been made from an earlier census: its replicas stay, its shares are recomputed. Local,
// deterministic.
#ifndef PLAIT_PARALLEL_MOE_ROW_BALANCE_H_
#define PLAIT_PARALLEL_MOE_ROW_BALANCE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "parallel/moe/load.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

enum class Sharing {
  kLocalFirst,  // rows stay on their rank if it has the expert; the others go to the least loaded ranks
  kEqual,       // optimal: moving rows cannot make loads more equal; then as many local rows as possible
};

// Rows of each expert on each rank, updated as replicas are added; for planners.
class RowBalance {
 public:
  // `census` must outlive this.
  RowBalance(const Census& census, const ExpertPlacement& placement, Sharing sharing);

  void AddReplica(int expert, int rank);

  bool Has(int rank, int expert) const { return has_[Index(rank, expert)] != 0; }
  // Rows of `expert` that `rank` computes.
  std::int64_t rows(int rank, int expert) const { return rows_[Index(rank, expert)]; }
  // Those of them that come from other ranks.
  std::int64_t RemoteRows(int rank, int expert) const;
  // The rank that computes the most remote rows of `expert`.
  int RankOfMostRemoteRows(int expert) const;
  // By rank, equal to LoadOfRanks.
  const std::vector<RankLoad>& loads() const { return loads_; }
  int home_rank(int expert) const { return home_ranks_[expert]; }

 private:
  struct Copies {
    int expert;
    std::vector<int> ranks;  // home first
  };
  enum class Movable { kRemote, kAny };  // which rows may move from a rank to another

  std::size_t Index(int rank, int expert) const { return std::size_t(rank) * census_->experts() + expert; }
  std::int64_t RowsToMove(int expert, int from, Movable which) const;
  void Insert(int expert, int rank);
  void Transfer(int expert, int from, int to, std::int64_t rows);
  void Balance();
  void SetCapacities(Movable which);
  bool Improve(Movable which);
  void MoveAlongPath(int from, int to, Movable which);
  void Move(int from, int to, std::int64_t rows, Movable which);

  const Census* census_;
  Sharing sharing_;
  std::vector<int> home_ranks_;     // by expert
  std::vector<std::int64_t> rows_;  // (ranks, experts)
  std::vector<char> has_;           // (ranks, experts)
  std::vector<Copies> copies_;      // of experts that have replicas
  std::vector<RankLoad> loads_;
  std::vector<std::int64_t> capacities_;  // (ranks, ranks): rows that may move from one to the other
  std::vector<int> next_;                 // by rank: the next on the path to the rank with the fewest rows
};

// Sets placement's shares for all rows of the census.
void ShareRows(const Census& census, Sharing sharing, ExpertPlacement& placement);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_ROW_BALANCE_H_
