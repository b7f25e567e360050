// Where experts are computed: each expert has a home rank; hot experts may have replicas on other ranks.
//
//   ExpertPlacement placement(/*ranks=*/4, /*experts=*/32);          // expert e on rank e / 8
//   placement.AddReplica(/*expert=*/5, /*rank=*/2);
//   ShareRows(census, Sharing::kEqual, placement);                    // which rows go to which of them (row_balance.h)
//   for (const RowShare& share : placement.shares(source, expert)) ...
//
// Routing, gradients, optimizer states and checkpoints refer to logical experts only. A rank's slots are its home
// experts, in order, then its replicas, in the order of AddReplica: read-only copies of weights, whose gradients are
// sent to the home rank. Which ranks compute an expert changes results only by the rounding of sums. Local; plain data,
// the same on all ranks of the expert-parallel group, because all compute it from the same census.
#ifndef PLAIT_PARALLEL_MOE_PLACEMENT_H_
#define PLAIT_PARALLEL_MOE_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plait::moe {

// How many rows each rank sends to each expert: the only input of planners besides their options.
class Census {
 public:
  Census(int ranks, int experts) : ranks_(ranks), experts_(experts), rows_(std::size_t(ranks) * experts) {}
  // `rows`: (ranks, experts), row-major.
  Census(int ranks, int experts, std::vector<std::int64_t> rows);

  int ranks() const { return ranks_; }
  int experts() const { return experts_; }
  std::int64_t& at(int rank, int expert) { return rows_[std::size_t(rank) * experts_ + expert]; }
  std::int64_t at(int rank, int expert) const { return rows_[std::size_t(rank) * experts_ + expert]; }
  std::int64_t OfExpert(int expert) const;  // of all ranks
  std::int64_t total() const;

 private:
  int ranks_, experts_;
  std::vector<std::int64_t> rows_;
};

// Of the rows that one rank sends to one expert, in order, the next `rows` go to this slot.
struct RowShare {
  int rank = 0;
  int slot = 0;
  std::int64_t rows = 0;

  friend bool operator==(const RowShare&, const RowShare&) = default;
};

class ExpertPlacement {
 public:
  // Only homes: rank r has the experts [experts * r / ranks, experts * (r + 1) / ranks). All rows go home.
  ExpertPlacement(int ranks, int experts);

  int ranks() const { return static_cast<int>(slots_.size()); }
  int experts() const { return experts_; }
  int home_rank(int expert) const { return home_ranks_[expert]; }
  int first_home_expert(int rank) const;
  int home_experts(int rank) const { return first_home_expert(rank + 1) - first_home_expert(rank); }
  // The expert of each slot; home experts first.
  absl::Span<const int> slots(int rank) const { return slots_[rank]; }
  int replicas(int rank) const { return static_cast<int>(slots_[rank].size()) - home_experts(rank); }
  int SlotOf(int expert, int rank) const;  // -1: the rank does not have it

  // Appends a slot to `rank`, which must not have the expert yet.
  void AddReplica(int expert, int rank);

  // Where the rows of `source` to `expert` go, in order. Empty: all go home.
  absl::Span<const RowShare> shares(int source, int expert) const;
  // Each share must have at least one row, and a slot of that expert.
  void SetShares(int source, int expert, std::vector<RowShare> shares);
  // Rows that a rank computes, by slot. `census` must be the one of the shares.
  std::vector<std::int64_t> RowsOfSlots(int rank, const Census& census) const;

  friend bool operator==(const ExpertPlacement&, const ExpertPlacement&);

 private:
  int experts_;
  std::vector<int> home_ranks_;                // by expert
  std::vector<std::vector<int>> slots_;        // by rank
  std::vector<std::vector<RowShare>> shares_;  // (source, expert); empty: home
};

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_PLACEMENT_H_
