// Shares of rows against hand-made cases and against Hall's condition: how few rows the busiest rank can have is a
// maximum over all sets of ranks, without any search for the shares themselves.
#include "parallel/moe/row_balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "parallel/moe/testing/random_census.h"

namespace plait::moe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::RandomCensus;
using testing::RandomPlacement;

std::vector<std::int64_t> Rows(const std::vector<RankLoad>& loads) {
  std::vector<std::int64_t> rows;
  for (const RankLoad& load : loads) rows.push_back(load.rows);
  return rows;
}

TEST(ShareRowsTest, LocalRowsStay) {
  // Homes 0 | 1; all rows go to expert 0.
  const Census census(2, 2, {90, 0, 10, 0});
  ExpertPlacement placement(2, 2);
  placement.AddReplica(0, 1);
  ShareRows(census, Sharing::kLocalFirst, placement);
  EXPECT_THAT(placement.shares(0, 0), IsEmpty());
  EXPECT_THAT(placement.shares(1, 0), ElementsAre(RowShare{1, 1, 10}));
  ShareRows(census, Sharing::kEqual, placement);
  EXPECT_THAT(placement.shares(0, 0), ElementsAre(RowShare{0, 0, 50}, RowShare{1, 1, 40}));
  EXPECT_THAT(placement.shares(1, 0), ElementsAre(RowShare{1, 1, 10}));
}

TEST(ShareRowsTest, OtherRowsFillTheRanksWithLeast) {
  // Homes 0 | 1 | 2 | 3. Expert 0 is on ranks 0, 1 and 2; rank 3's 90 rows for it make these equal as far as that goes.
  const Census census(4, 4, {20, 0, 0, 0, 10, 5, 0, 0, 0, 0, 40, 0, 90, 0, 0, 7});
  ExpertPlacement placement(4, 4);
  placement.AddReplica(0, 1);
  placement.AddReplica(0, 2);
  ShareRows(census, Sharing::kLocalFirst, placement);
  // 20, 15, 40 and 90 more: 165 / 3 each.
  EXPECT_THAT(placement.shares(3, 0),
              ElementsAre(RowShare{0, 0, 35}, RowShare{1, 1, 40}, RowShare{2, 1, 15}));
  EXPECT_THAT(Rows(LoadOfRanks(census, placement)), ElementsAre(55, 55, 55, 7));
}

TEST(ShareRowsTest, RowsMoveOnThroughOtherExperts) {
  // Rank 2 shares no expert with rank 0, but rank 1 has copies of both: 0 gives to 1 what 1 gives to 2.
  const Census census(3, 3, {0, 0, 0, 60, 0, 0, 30, 60, 0});
  ExpertPlacement placement(3, 3);
  placement.AddReplica(0, 1);
  placement.AddReplica(1, 2);
  ShareRows(census, Sharing::kLocalFirst, placement);
  // 60 of expert 0 stay on rank 1, 60 of expert 1 on rank 2; 30 are for rank 0.
  EXPECT_THAT(Rows(LoadOfRanks(census, placement)), ElementsAre(30, 60, 60));
  ShareRows(census, Sharing::kEqual, placement);
  EXPECT_THAT(Rows(LoadOfRanks(census, placement)), ElementsAre(50, 50, 50));
  const Census chain(3, 3, {90, 0, 0, 0, 60, 0, 0, 0, 0});
  ShareRows(chain, Sharing::kEqual, placement);
  EXPECT_THAT(Rows(LoadOfRanks(chain, placement)), ElementsAre(50, 50, 50));
}

TEST(ShareRowsTest, SharesOfAnotherCensusGo) {
  ExpertPlacement placement(2, 2);
  placement.AddReplica(0, 1);
  ShareRows(Census(2, 2, {90, 3, 10, 4}), Sharing::kEqual, placement);
  const Census none(2, 2);
  ShareRows(none, Sharing::kEqual, placement);
  EXPECT_THAT(placement.RowsOfSlots(0, none), ElementsAre(0));
  EXPECT_THAT(placement.RowsOfSlots(1, none), ElementsAre(0, 0));
}

// For a set of ranks: rows that can be nowhere else, or those that could be there.
std::int64_t RowsOfRanks(const Census& census, const ExpertPlacement& placement, Sharing sharing,
                         unsigned ranks, bool could_be) {
  std::int64_t sum = 0;
  for (int expert = 0; expert < census.experts(); ++expert) {
    bool all_inside = true, any_inside = false;
    for (int rank = 0; rank < census.ranks(); ++rank) {
      if (placement.SlotOf(expert, rank) < 0) continue;
      ((ranks >> rank & 1) != 0 ? any_inside : all_inside) = (ranks >> rank & 1) != 0;
    }
    for (int rank = 0; rank < census.ranks(); ++rank) {
      const bool stays = sharing == Sharing::kLocalFirst && placement.SlotOf(expert, rank) >= 0;
      const bool counts = stays ? (ranks >> rank & 1) != 0 : could_be ? any_inside : all_inside;
      if (counts) sum += census.at(rank, expert);
    }
  }
  return sum;
}

void ExpectOptimal(const Census& census, const ExpertPlacement& placement, Sharing sharing) {
  std::int64_t most = 0, least = census.total();
  for (unsigned ranks = 1; ranks < 1U << census.ranks(); ++ranks) {
    const int count = __builtin_popcount(ranks);
    most = std::max(most, (RowsOfRanks(census, placement, sharing, ranks, false) + count - 1) / count);
    least = std::min(least, RowsOfRanks(census, placement, sharing, ranks, true) / count);
  }
  const std::vector<std::int64_t> rows = Rows(LoadOfRanks(census, placement));
  EXPECT_EQ(*std::max_element(rows.begin(), rows.end()), most);
  EXPECT_EQ(*std::min_element(rows.begin(), rows.end()), least);
}

void ExpectConserved(const Census& census, const ExpertPlacement& placement) {
  std::vector<std::int64_t> computed(census.experts());
  for (int rank = 0; rank < census.ranks(); ++rank) {
    const std::vector<std::int64_t> rows = placement.RowsOfSlots(rank, census);
    for (std::size_t slot = 0; slot < rows.size(); ++slot)
      computed[placement.slots(rank)[slot]] += rows[slot];
    for (int expert = 0; expert < census.experts(); ++expert) {
      const absl::Span<const RowShare> shares = placement.shares(rank, expert);
      std::int64_t sum = 0;
      for (const RowShare& share : shares) sum += share.rows;
      EXPECT_TRUE(shares.empty() || sum == census.at(rank, expert)) << rank << " to " << expert;
    }
  }
  for (int expert = 0; expert < census.experts(); ++expert)
    EXPECT_EQ(computed[expert], census.OfExpert(expert));
}

std::int64_t KeptRows(const Census& census, const ExpertPlacement& placement) {
  std::int64_t local = 0;
  for (int rank = 0; rank < census.ranks(); ++rank) {
    for (int expert = 0; expert < census.experts(); ++expert) {
      if (placement.SlotOf(expert, rank) >= 0) local += census.at(rank, expert);
    }
  }
  return local;
}

void ExpectShared(const Census& census, Sharing sharing, ExpertPlacement placement) {
  ShareRows(census, sharing, placement);
  ExpectConserved(census, placement);
  ExpectOptimal(census, placement, sharing);
  EXPECT_EQ(RowBalance(census, placement, sharing).loads(), LoadOfRanks(census, placement));
  if (sharing == Sharing::kEqual) return;
  std::int64_t sent = 0;
  for (const RankLoad& load : LoadOfRanks(census, placement)) sent += load.sent_rows;
  EXPECT_EQ(sent, census.total() - KeptRows(census, placement));
}

TEST(ShareRowsTest, RandomCensuses) {
  std::uint64_t seed = 0;
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const int experts : {1, 3, 8, 17}) {
      for (const double probability : {0.0, 0.1, 0.4, 1.0}) {
        for (const std::int64_t most : {1, 7, 1000}) {
          SCOPED_TRACE(++seed);
          const Census census = RandomCensus(seed, ranks, experts, most);
          const ExpertPlacement placement = RandomPlacement(seed, ranks, experts, probability);
          ExpectShared(census, Sharing::kLocalFirst, placement);
          ExpectShared(census, Sharing::kEqual, placement);
        }
      }
    }
  }
}

TEST(ShareRowsTest, EqualKeepsLocalRowsWhereThatIsEqualEnough) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Census census = RandomCensus(seed, 3, 6, 3);
    ExpertPlacement local = RandomPlacement(seed, 3, 6, 0.5), equal = local;
    ShareRows(census, Sharing::kLocalFirst, local);
    ShareRows(census, Sharing::kEqual, equal);
    const std::vector<std::int64_t> rows = Rows(LoadOfRanks(census, local));
    if (*std::max_element(rows.begin(), rows.end()) - *std::min_element(rows.begin(), rows.end()) > 1)
      continue;
    EXPECT_EQ(local, equal) << seed;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

// Adding replicas one at a time leads to equally balanced loads.
TEST(RowBalanceTest, OneReplicaAtATime) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 4), experts = 9;
    const Census census = RandomCensus(seed, ranks, experts, 100);
    const ExpertPlacement placement = RandomPlacement(seed, ranks, experts, 0.4);
    for (const Sharing sharing : {Sharing::kLocalFirst, Sharing::kEqual}) {
      RowBalance balance(census, ExpertPlacement(ranks, experts), sharing);
      for (int rank = ranks - 1; rank >= 0; --rank) {
        for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank))) {
          balance.AddReplica(expert, rank);
        }
      }
      std::vector<std::int64_t> rows = Rows(balance.loads());
      std::vector<std::int64_t> whole = Rows(RowBalance(census, placement, sharing).loads());
      std::sort(rows.begin(), rows.end());
      std::sort(whole.begin(), whole.end());
      EXPECT_EQ(rows, whole) << seed;
    }
  }
}

}  // namespace
}  // namespace plait::moe
