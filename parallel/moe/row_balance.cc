#include "parallel/moe/row_balance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace plait::moe {

RowBalance::RowBalance(const Census& census, const ExpertPlacement& placement, Sharing sharing)
    : census_(&census),
      sharing_(sharing),
      home_ranks_(census.experts()),
      rows_(std::size_t(census.ranks()) * census.experts()),
      has_(rows_.size()),
      loads_(census.ranks()) {
  PLAIT_CHECK(census.ranks() == placement.ranks() && census.experts() == placement.experts())
      << "a census of " << census.experts() << " experts and " << census.ranks()
      << " ranks for a placement of " << placement.experts() << " on " << placement.ranks();
  for (int rank = 0; rank < census.ranks(); ++rank) {
    for (int expert = 0; expert < census.experts(); ++expert) {
      const int home = home_ranks_[expert] = placement.home_rank(expert);
      const std::int64_t rows = census.at(rank, expert);
      rows_[Index(home, expert)] += rows;
      has_[Index(home, expert)] = 1;
      loads_[home].rows += rows;
      if (rank == home) continue;
      loads_[home].received_rows += rows;
      loads_[rank].sent_rows += rows;
    }
  }
  for (int rank = 0; rank < census.ranks(); ++rank) {
    for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank))) Insert(expert, rank);
  }
  Balance();
}

void RowBalance::AddReplica(int expert, int rank) {
  Insert(expert, rank);
  Balance();
}

std::int64_t RowBalance::RemoteRows(int rank, int expert) const {
  return std::max<std::int64_t>(0, rows(rank, expert) - census_->at(rank, expert));
}

int RowBalance::RankOfMostRemoteRows(int expert) const {
  const auto copies =
      std::find_if(copies_.begin(), copies_.end(), [&](const Copies& c) { return c.expert == expert; });
  if (copies == copies_.end()) return home_rank(expert);
  return *std::max_element(copies->ranks.begin(), copies->ranks.end(),
                           [&](int a, int b) { return RemoteRows(a, expert) < RemoteRows(b, expert); });
}

std::int64_t RowBalance::RowsToMove(int expert, int from, Movable which) const {
  return which == Movable::kAny ? rows(from, expert) : RemoteRows(from, expert);
}

// The rank takes its own rows from those that are local nowhere; there are enough, since they can be local only there.
void RowBalance::Insert(int expert, int rank) {
  auto copies =
      std::find_if(copies_.begin(), copies_.end(), [&](const Copies& c) { return c.expert == expert; });
  if (copies == copies_.end()) copies = copies_.insert(copies_.end(), {expert, {home_rank(expert)}});
  has_[Index(rank, expert)] = 1;
  for (const int from : copies->ranks) {
    const std::int64_t own = census_->at(rank, expert) - rows(rank, expert);
    Transfer(expert, from, rank, std::min(own, RemoteRows(from, expert)));
  }
  copies->ranks.push_back(rank);
  ++loads_[rank].replicas;
  ++loads_[home_rank(expert)].replicas_of_its_experts;
}

void RowBalance::Transfer(int expert, int from, int to, std::int64_t rows) {
  const auto local = [&](int rank) { return std::min(this->rows(rank, expert), census_->at(rank, expert)); };
  for (const auto& [rank, change] : {std::pair(from, -rows), std::pair(to, rows)}) {
    const std::int64_t before = local(rank);
    rows_[Index(rank, expert)] += change;
    const std::int64_t kept = local(rank) - before;  // additional rows that stay local
    loads_[rank].rows += change;
    loads_[rank].sent_rows -= kept;
    loads_[rank].received_rows += change - kept;
  }
}

void RowBalance::Balance() {
  if (copies_.empty()) return;
  while (Improve(Movable::kRemote)) {
  }
  if (sharing_ == Sharing::kLocalFirst) return;
  while (Improve(Movable::kAny)) {
  }
}

void RowBalance::SetCapacities(Movable which) {
  const std::size_t ranks = loads_.size();
  capacities_.assign(ranks * ranks, 0);
  for (const Copies& copies : copies_) {
    for (const int from : copies.ranks) {
      const std::int64_t rows = RowsToMove(copies.expert, from, which);
      for (const int to : copies.ranks) capacities_[from * ranks + to] += rows;
    }
  }
}

// Finds the two ranks with the largest difference in rows that are connected by a path of copies, and balances them.
// Loads that no such step improves are optimal: ranks and experts form a flow network with convex costs, in which each
// improving cycle is such a path.
bool RowBalance::Improve(Movable which) {
  const int ranks = static_cast<int>(loads_.size());
  SetCapacities(which);
  std::vector<int> order(ranks), queue;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return loads_[a].rows < loads_[b].rows; });
  next_.assign(ranks, -1);
  std::int64_t largest = 1;
  int most = -1, least = -1;
  for (const int target : order) {  // from whoever can reach it, and can reach none that has fewer rows
    if (next_[target] >= 0) continue;
    next_[target] = target;
    queue.assign(1, target);
    for (std::size_t done = 0; done < queue.size(); ++done) {
      for (int from = 0; from < ranks; ++from) {
        if (next_[from] >= 0 || capacities_[std::size_t(from) * ranks + queue[done]] == 0) continue;
        next_[from] = queue[done];
        queue.push_back(from);
        const std::int64_t difference = loads_[from].rows - loads_[target].rows;
        if (difference > largest) largest = difference, most = from, least = target;
      }
    }
  }
  if (most >= 0) MoveAlongPath(most, least, which);
  return most >= 0;
}

// Half of the difference, where there are as many rows to move.
void RowBalance::MoveAlongPath(int from, int to, Movable which) {
  const std::size_t ranks = loads_.size();
  std::int64_t rows = (loads_[from].rows - loads_[to].rows) / 2;
  for (int rank = from; rank != to; rank = next_[rank]) {
    rows = std::min(rows, capacities_[rank * ranks + next_[rank]]);
  }
  for (int rank = from; rank != to; rank = next_[rank]) Move(rank, next_[rank], rows, which);
}

void RowBalance::Move(int from, int to, std::int64_t rows, Movable which) {
  for (const Copies& copies : copies_) {
    if (!Has(from, copies.expert) || !Has(to, copies.expert)) continue;
    const std::int64_t part = std::min(rows, RowsToMove(copies.expert, from, which));
    Transfer(copies.expert, from, to, part);
    rows -= part;
  }
  PLAIT_CHECK(rows == 0) << rows << " rows too many from rank " << from << " to " << to;
}

namespace {

// Each rank's own rows first; then the remaining rows fill the remaining capacity, both in the order of ranks.
void ShareExpert(const Census& census, const RowBalance& balance, int expert, ExpertPlacement& placement) {
  const int ranks = census.ranks();
  std::vector<std::vector<RowShare>> shares(ranks);
  std::vector<std::int64_t> to_send(ranks), to_take(ranks);
  const auto add = [&](int source, int rank, std::int64_t rows) {
    if (rows > 0) shares[source].push_back({rank, placement.SlotOf(expert, rank), rows});
    to_send[source] -= rows;
    to_take[rank] -= rows;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    to_send[rank] = census.at(rank, expert);
    to_take[rank] = balance.rows(rank, expert);
    add(rank, rank, std::min(to_send[rank], to_take[rank]));
  }
  int rank = 0;
  for (int source = 0; source < ranks; ++source) {
    while (to_send[source] > 0) {
      while (to_take[rank] == 0) ++rank;
      add(source, rank, std::min(to_send[source], to_take[rank]));
    }
    const bool home = shares[source].size() == 1 && shares[source][0].rank == placement.home_rank(expert);
    if (!home) placement.SetShares(source, expert, std::move(shares[source]));
  }
}

}  // namespace

void ShareRows(const Census& census, Sharing sharing, ExpertPlacement& placement) {
  const RowBalance balance(census, placement, sharing);
  std::vector<char> has_replicas(placement.experts());
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank)))
      has_replicas[expert] = 1;
    for (int expert = 0; expert < placement.experts(); ++expert) placement.SetShares(rank, expert, {});
  }
  for (int expert = 0; expert < placement.experts(); ++expert) {
    if (has_replicas[expert]) ShareExpert(census, balance, expert, placement);
  }
}

}  // namespace plait::moe
