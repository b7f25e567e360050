// Which rows go to which of an expert's copies, so that ranks compute as equal numbers as the placement allows.
//
//   ShareRows(census, Sharing::kLocalFirst, placement);    // placement.shares(source, expert)
//
// A placement may be older than the census: its replicas stay, its shares are made again. Local, deterministic.
#ifndef PLAIT_PARALLEL_MOE_ROW_BALANCE_H_
#define PLAIT_PARALLEL_MOE_ROW_BALANCE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "parallel/moe/load.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

enum class Sharing {
  kLocalFirst,  // rows stay on their rank where it has the expert; the others fill the ranks that have least
  kEqual,  // no rank can get fewer rows but for another that has as many; local rows where that leaves a choice
};

// Rows of each expert on each rank while replicas are added: what planners search with.
class RowBalance {
 public:
  // `census` must outlive this.
  RowBalance(const Census& census, const ExpertPlacement& placement, Sharing sharing);

  void AddReplica(int expert, int rank);

  bool Has(int rank, int expert) const { return has_[Index(rank, expert)] != 0; }
  // Of `expert`, computed on `rank`.
  std::int64_t rows(int rank, int expert) const { return rows_[Index(rank, expert)]; }
  // Those of them that come from other ranks.
  std::int64_t RemoteRows(int rank, int expert) const;
  // That computes most of these.
  int RankOfMostRemoteRows(int expert) const;
  // By rank, as LoadOfRanks.
  const std::vector<RankLoad>& loads() const { return loads_; }
  int home_rank(int expert) const { return home_ranks_[expert]; }

 private:
  struct Copies {
    int expert;
    std::vector<int> ranks;  // home first
  };
  enum class Movable { kRemote, kAny };  // rows that may go from a rank to another

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
  std::vector<std::int64_t> capacities_;  // (ranks, ranks): rows that may go from one to the other
  std::vector<int> next_;                 // by rank: the next on the path to the rank with least rows
};

// Sets the shares of all rows of the census.
void ShareRows(const Census& census, Sharing sharing, ExpertPlacement& placement);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_ROW_BALANCE_H_
