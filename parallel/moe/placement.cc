#include "parallel/moe/placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace plait::moe {

Census::Census(int ranks, int experts, std::vector<std::int64_t> rows)
    : ranks_(ranks), experts_(experts), rows_(std::move(rows)) {
  PLAIT_CHECK(rows_.size() == std::size_t(ranks) * experts)
      << rows_.size() << " numbers for " << ranks << " ranks and " << experts << " experts";
}

std::int64_t Census::OfExpert(int expert) const {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks_; ++rank) sum += at(rank, expert);
  return sum;
}

std::int64_t Census::total() const { return std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0}); }

ExpertPlacement::ExpertPlacement(int ranks, int experts)
    : experts_(experts), home_ranks_(experts), slots_(ranks), shares_(std::size_t(ranks) * experts) {
  PLAIT_CHECK(ranks >= 1 && experts >= 1)
      << "a placement of " << experts << " experts on " << ranks << " ranks";
  for (int rank = 0; rank < ranks; ++rank) {
    for (int expert = first_home_expert(rank); expert < first_home_expert(rank + 1); ++expert) {
      home_ranks_[expert] = rank;
      slots_[rank].push_back(expert);
    }
  }
}

int ExpertPlacement::first_home_expert(int rank) const {
  return static_cast<int>(std::int64_t{experts_} * rank / ranks());
}

int ExpertPlacement::SlotOf(int expert, int rank) const {
  const int first = first_home_expert(rank), home = home_experts(rank);
  if (expert >= first && expert < first + home) return expert - first;
  const std::vector<int>& slots = slots_[rank];
  const auto found = std::find(slots.begin() + home, slots.end(), expert);
  return found == slots.end() ? -1 : static_cast<int>(found - slots.begin());
}

void ExpertPlacement::AddReplica(int expert, int rank) {
  PLAIT_CHECK(expert >= 0 && expert < experts_ && rank >= 0 && rank < ranks())
      << "expert " << expert << " on rank " << rank << ", of " << experts_ << " on " << ranks();
  PLAIT_CHECK(SlotOf(expert, rank) < 0) << "rank " << rank << " has expert " << expert << " already";
  slots_[rank].push_back(expert);
}

absl::Span<const RowShare> ExpertPlacement::shares(int source, int expert) const {
  return shares_[std::size_t(source) * experts_ + expert];
}

void ExpertPlacement::SetShares(int source, int expert, std::vector<RowShare> shares) {
  for (const RowShare& share : shares) {
    PLAIT_CHECK(share.rows > 0 && SlotOf(expert, share.rank) == share.slot)
        << share.rows << " rows for expert " << expert << " in slot " << share.slot << " of rank "
        << share.rank << ", which has it in " << SlotOf(expert, share.rank);
  }
  shares_[std::size_t(source) * experts_ + expert] = std::move(shares);
}

std::vector<std::int64_t> ExpertPlacement::RowsOfSlots(int rank, const Census& census) const {
  PLAIT_CHECK(census.ranks() == ranks() && census.experts() == experts_)
      << "a census of " << census.experts() << " experts and " << census.ranks() << " ranks";
  std::vector<std::int64_t> rows(slots_[rank].size());
  for (std::size_t slot = 0; slot < rows.size(); ++slot) {
    const int expert = slots_[rank][slot];
    for (int source = 0; source < ranks(); ++source) {
      const std::int64_t sent = census.at(source, expert);
      const absl::Span<const RowShare> parts = shares(source, expert);
      std::int64_t shared = 0;
      for (const RowShare& share : parts) {
        shared += share.rows;
        if (share.rank == rank) rows[slot] += share.rows;
      }
      PLAIT_CHECK(parts.empty() || shared == sent) << "shares of another census: " << shared << " of " << sent
                                                   << " rows from " << source << " to " << expert;
      if (parts.empty() && home_ranks_[expert] == rank) rows[slot] += sent;
    }
  }
  return rows;
}

bool operator==(const ExpertPlacement& a, const ExpertPlacement& b) {
  return a.experts_ == b.experts_ && a.slots_ == b.slots_ && a.shares_ == b.shares_;
}

}  // namespace plait::moe
