// Planners against hand-made cases, break-even points worked out by hand, and all placements of small cases.
#include "parallel/moe/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "parallel/moe/load.h"
#include "parallel/moe/row_balance.h"
#include "parallel/moe/testing/random_census.h"
#include "parallel/moe/workloads.h"

namespace plait::moe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RandomCensus;
using testing::RandomPlacement;

constexpr PlacementPolicy kPolicies[] = {PlacementPolicy::kHome, PlacementPolicy::kShadow,
                                         PlacementPolicy::kEplb, PlacementPolicy::kBalanced};

// A second for a byte, ten for a FLOP: rows of 8 bytes and 6 * 2 * 2 * 3 = 72 FLOPs, experts of 48 bytes.
MoeCostModel SmallCost() {
  return {.link_bytes_per_second = 1, .rank_flops_per_second = 0.1, .width = 2, .hidden = 3};
}
// Products take no time.
MoeCostModel BytesAlone(int hidden) {
  return {.link_bytes_per_second = 1e9, .rank_flops_per_second = 1e30, .width = 16, .hidden = hidden};
}

std::vector<std::pair<int, int>> Replicas(const ExpertPlacement& placement) {  // (expert, rank)
  std::vector<std::pair<int, int>> replicas;
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank))) {
      replicas.emplace_back(expert, rank);
    }
  }
  return replicas;
}

ExpertPlacement Placed(int ranks, int experts, const std::vector<std::pair<int, int>>& replicas) {
  ExpertPlacement placement(ranks, experts);
  for (const auto& [expert, rank] : replicas) placement.AddReplica(expert, rank);
  return placement;
}

std::int64_t MostRows(const Census& census, const ExpertPlacement& placement) {
  std::int64_t most = 0;
  for (const RankLoad& load : LoadOfRanks(census, placement)) most = std::max(most, load.rows);
  return most;
}

// The formula of cost_model.h, from shares alone.
double SecondsOf(const MoeCostModel& cost, const Census& census, const ExpertPlacement& placement) {
  const int ranks = census.ranks();
  const double matrix = static_cast<double>(cost.width * cost.hidden), matrices = cost.gated ? 3 : 2;
  double computed = 0, moved = 0, copied = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double rows = 0, sent = 0, received = 0, copies = 0;
    for (const auto& [expert, to] : Replicas(placement))
      copies += placement.home_rank(expert) == rank ? 1 : 0;
    for (const std::int64_t r : placement.RowsOfSlots(rank, census)) rows += static_cast<double>(r);
    for (int source = 0; source < ranks; ++source) {
      for (int expert = 0; expert < census.experts(); ++expert) {
        std::vector<RowShare> shares(placement.shares(source, expert).begin(),
                                     placement.shares(source, expert).end());
        if (shares.empty()) shares.push_back({placement.home_rank(expert), 0, census.at(source, expert)});
        for (const RowShare& share : shares) {
          if (share.rank == rank && source != rank) received += static_cast<double>(share.rows);
          if (share.rank != rank && source == rank) sent += static_cast<double>(share.rows);
        }
      }
    }
    computed = std::max(computed, rows);
    moved = std::max({moved, sent, received});
    copied = std::max({copied, copies, static_cast<double>(placement.replicas(rank))});
  }
  const double link = cost.link_bytes_per_second, latency = cost.latency_seconds;
  return computed * 6 * matrices * matrix / cost.rank_flops_per_second +
         4 * (moved * static_cast<double>(cost.width) * cost.element_bytes / link + (ranks - 1) * latency) +
         copied * (matrices * matrix * cost.element_bytes / link + latency) * (1 + 1.0 / cost.micro_batches);
}

TEST(CostModelTest, ByHand) {
  MoeCostModel cost = SmallCost();
  const std::vector<RankLoad> ranks = {
      {.rows = 10, .sent_rows = 3, .received_rows = 5, .replicas = 1},
      {.rows = 12, .sent_rows = 6, .received_rows = 4, .replicas_of_its_experts = 2},
      {.rows = 11}};
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).compute, 12 * 720);
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).exchange, 4 * 6 * 8);
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).replicas, 2 * 2 * 48);
  cost.latency_seconds = 5;
  cost.gated = true;
  cost.micro_batches = 8;
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).compute, 12 * 1080);
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).exchange, 4 * (6 * 8 + 2 * 5));
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).replicas, 2 * (72 + 5) * (1 + 1 / 8.0));
  EXPECT_DOUBLE_EQ(PredictSeconds(cost, ranks).total(), 12 * 1080 + 4 * 58 + 154 + 19.25);
}

TEST(CostModelTest, RandomPlacements) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Census census = RandomCensus(seed, 4, 6, 50);
    ExpertPlacement placement = RandomPlacement(seed, 4, 6, 0.3);
    ShareRows(census, Sharing::kEqual, placement);
    const MoeCostModel cost = {.link_bytes_per_second = 3,
                               .latency_seconds = 7,
                               .rank_flops_per_second = 2,
                               .width = 5,
                               .hidden = 6,
                               .gated = seed % 2 == 0,
                               .element_bytes = 2,
                               .micro_batches = 3};
    EXPECT_NEAR(
        PredictSeconds(cost, LoadOfRanks(census, placement)).total() / SecondsOf(cost, census, placement), 1,
        1e-14);
  }
}

// Rank 1 sends `rows` to expert 0 of rank 0, nothing else happens. Bytes on the link: 4 * rows * d * b, or (1 + 1 / m) n d h b.
bool PaysInBytes(const MoeCostModel& cost, std::int64_t rows) {
  const ExpertPlacement placement = PlanPlacement(
      {.policy = PlacementPolicy::kShadow, .replica_slots = 4, .cost = cost}, Census(2, 2, {0, 0, rows, 0}));
  return placement.replicas(1) == 1;
}

TEST(ShadowTest, BreakEvenInBytes) {
  for (const int hidden : {1, 8, 64, 1000}) {
    MoeCostModel cost = BytesAlone(hidden);
    EXPECT_FALSE(PaysInBytes(cost, hidden));
    EXPECT_TRUE(PaysInBytes(cost, hidden + 1));
    cost.gated = true;
    EXPECT_FALSE(PaysInBytes(cost, 3 * hidden / 2));
    EXPECT_TRUE(PaysInBytes(cost, 3 * hidden / 2 + 1));
    cost.gated = false;
    cost.micro_batches = 3;  // a third of the weights, and the gradients
    EXPECT_FALSE(PaysInBytes(cost, 2 * hidden / 3));
    EXPECT_TRUE(PaysInBytes(cost, 2 * hidden / 3 + 1));
  }
}

// Ranks 0 and 2 send rows to expert 0 of rank 0.
TEST(ShadowTest, ByHandWithCompute) {
  // 32 * 720 + 4 * 16 * 8 at home, 16 * 720 + 2 * 48 with a replica on rank 2; another has nothing to do.
  const Census census(3, 3, {16, 0, 0, 0, 0, 0, 16, 0, 0});
  PlannerOptions options = {.policy = PlacementPolicy::kShadow, .replica_slots = 2, .cost = SmallCost()};
  EXPECT_THAT(Replicas(PlanPlacement(options, census)), ElementsAre(std::pair(0, 2)));
  const Census little(3, 3, {16, 0, 0, 0, 0, 0, 2, 0, 0});
  // At home 18 * 720 + 4 * 2 * 8 = 13024, with a replica 16 * 720 + 2 * 48 = 11616.
  EXPECT_THAT(Replicas(PlanPlacement(options, little)), ElementsAre(std::pair(0, 2)));
  // A replica costs two latencies more: 1408 seconds saved are 704 for each.
  options.cost.latency_seconds = 703;
  EXPECT_THAT(Replicas(PlanPlacement(options, little)), ElementsAre(std::pair(0, 2)));
  options.cost.latency_seconds = 705;
  EXPECT_THAT(Replicas(PlanPlacement(options, little)), ElementsAre());
}

// Two ranks are equally overloaded: one replica alone lowers no maximum, both do.
TEST(ShadowTest, ReplicasThatPayOnlyTogether) {
  const Census census(4, 4, {50, 0, 0, 0, 0, 50, 0, 0, 50, 0, 0, 0, 0, 50, 0, 0});
  const PlannerOptions options = {
      .policy = PlacementPolicy::kShadow, .replica_slots = 2, .cost = SmallCost()};
  const ExpertPlacement placement = PlanPlacement(options, census);
  EXPECT_THAT(Replicas(placement), ElementsAre(std::pair(0, 2), std::pair(1, 3)));
  EXPECT_EQ(MostRows(census, placement), 50);
}

double ShadowSeconds(const MoeCostModel& cost, const Census& census,
                     const std::vector<std::pair<int, int>>& replicas) {
  ExpertPlacement placement = Placed(census.ranks(), census.experts(), replicas);
  ShareRows(census, Sharing::kLocalFirst, placement);
  return SecondsOf(cost, census, placement);
}

MoeCostModel CostOfSeed(std::uint64_t seed) {
  const double links[] = {1, 0.05, 10};
  MoeCostModel cost = SmallCost();
  cost.link_bytes_per_second = links[seed % 3];
  cost.hidden = 20;
  cost.rank_flops_per_second = 60;
  cost.latency_seconds = seed % 2 == 0 ? 0 : 10;
  return cost;
}

TEST(ShadowTest, EachReplicaPays) {
  int replicas_in_all = 0;
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    const Census census = RandomCensus(seed, 4, 8, 200);
    const MoeCostModel cost = CostOfSeed(seed);
    const ExpertPlacement placement =
        PlanPlacement({.policy = PlacementPolicy::kShadow, .replica_slots = 6, .cost = cost}, census);
    const std::vector<std::pair<int, int>> replicas = Replicas(placement);
    const double seconds = SecondsOf(cost, census, placement);
    EXPECT_LE(seconds, ShadowSeconds(cost, census, {}) * (1 + 1e-12)) << seed;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      std::vector<std::pair<int, int>> others = replicas;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_LT(seconds, ShadowSeconds(cost, census, others)) << seed << " " << i;
    }
    replicas_in_all += static_cast<int>(replicas.size());
  }
  EXPECT_GE(replicas_in_all, 90);
}

// Calls `visit` for every set of replicas with at most `slots` on a rank.
void ForAllPlacements(int ranks, int experts, int slots,
                      const std::function<void(const std::vector<std::pair<int, int>>&)>& visit) {
  std::vector<std::pair<int, int>> candidates;
  const ExpertPlacement homes(ranks, experts);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int expert = 0; expert < experts; ++expert) {
      if (homes.home_rank(expert) != rank) candidates.emplace_back(expert, rank);
    }
  }
  for (unsigned set = 0; set < 1U << candidates.size(); ++set) {
    std::vector<std::pair<int, int>> chosen;
    std::vector<int> used(ranks);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      chosen.push_back(candidates[i]);
      ++used[candidates[i].second];
    }
    if (*std::max_element(used.begin(), used.end()) <= slots) visit(chosen);
  }
}

TEST(ShadowTest, NearTheBestOfAllPlacements) {
  int best = 0, cases = 0;
  double sum = 0, worst = 1;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Census census = RandomCensus(seed, 3, 4, 100);
    const MoeCostModel cost = CostOfSeed(seed);
    double least = ShadowSeconds(cost, census, {});
    if (least == 0) continue;
    ForAllPlacements(3, 4, 2, [&](const std::vector<std::pair<int, int>>& replicas) {
      least = std::min(least, ShadowSeconds(cost, census, replicas));
    });
    const PlannerOptions options = {.policy = PlacementPolicy::kShadow, .replica_slots = 2, .cost = cost};
    const double ratio = SecondsOf(cost, census, PlanPlacement(options, census)) / least;
    EXPECT_GE(ratio, 1 - 1e-12) << seed;
    if (ratio <= 1 + 1e-12) ++best;
    ++cases;
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  EXPECT_GE(best, cases * 2 / 3);
  EXPECT_LE(sum / cases, 1.03);
  EXPECT_LE(worst, 1.4);
}

TEST(EplbTest, ByHand) {
  // Homes 0 1 | 2 3; experts have 80, 10, 6, 4 rows. Expert 0 gets a second copy, then expert 1: rank 1 has one slot, for
  // the larger, and rank 0 has both at home.
  const Census census(2, 4, {40, 5, 3, 2, 40, 5, 3, 2});
  const ExpertPlacement placement =
      PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 1}, census);
  EXPECT_THAT(Replicas(placement), ElementsAre(std::pair(0, 1)));
  // Homes 0 | 1 | 2 | 3; 90, 40, 20, 10 rows. Copies go to 0 (45 each), 0 (30), 1 (20), 0 (22.5): 4, 2, 1, 1 of them.
  // Ranks 3, 1, 2 get expert 0 in this order; then only rank 0 has a slot for expert 1.
  const Census four(4, 4, {90, 0, 0, 0, 0, 40, 0, 0, 0, 0, 20, 0, 0, 0, 0, 10});
  EXPECT_THAT(Replicas(PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 1}, four)),
              ElementsAre(std::pair(1, 0), std::pair(0, 1), std::pair(0, 2), std::pair(0, 3)));
  // Four more to 1 (13.3), 2 (10), 1 (10), 2 (6.7): 4, 4, 3, 1.
  EXPECT_THAT(Replicas(PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 2}, four)),
              ElementsAre(std::pair(1, 0), std::pair(2, 0), std::pair(0, 1), std::pair(2, 1), std::pair(0, 2),
                          std::pair(1, 2), std::pair(0, 3), std::pair(1, 3)));
}

TEST(EplbTest, PackingCountsWhatIsPacked) {
  // Homes 0 1 | 2 3 | 4 5 | 6 7. Copies: 4 of 0 (20 each), 4 of 2 (17.5), 2 of 4 (10), 2 of 6 (8); ranks begin with 20, 17.5,
  // 10 and 8 rows. Expert 0 goes to 3 (28), 2 (30), 1 (37.5); 2 to 0 (37.5), 3, 2, which are full; 4 to 0 (47.5), 6 to 1.
  const Census census(4, 8, {80, 0, 0, 0, 0,  0, 0, 0, 0, 0, 70, 0, 0, 0, 0,  0,
                             0,  0, 0, 0, 20, 0, 0, 0, 0, 0, 0,  0, 0, 0, 16, 0});
  EXPECT_THAT(Replicas(PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 2}, census)),
              ElementsAre(std::pair(2, 0), std::pair(4, 0), std::pair(0, 1), std::pair(6, 1), std::pair(0, 2),
                          std::pair(2, 2), std::pair(0, 3), std::pair(2, 3)));
}

// Unneeded replicas do no harm.
TEST(EplbTest, BalancedRanksStaySo) {
  const Census census(2, 4, {30, 10, 10, 30, 10, 30, 30, 10});
  EXPECT_EQ(MostRows(census, PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 1}, census)),
            80);
  const Census ragged(2, 4, {0, 0, 0, 0, 40, 40, 40, 40});
  EXPECT_EQ(MostRows(ragged, PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 2}, ragged)),
            80);
}

TEST(EplbTest, NoReplicasOfExpertsWithoutRows) {
  const ExpertPlacement placement = PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 3},
                                                  Census(2, 4, {0, 0, 0, 9, 0, 0, 0, 9}));
  EXPECT_THAT(Replicas(placement), ElementsAre(std::pair(3, 0)));
}

TEST(BalancedTest, NoRankHasMoreThanItsPart) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const int experts : {1, 3, 8, 32}) {
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Census census = RandomCensus(seed, ranks, experts, seed % 2 == 0 ? 500 : 2);
        const ExpertPlacement placement =
            PlanPlacement({.policy = PlacementPolicy::kBalanced, .replica_slots = experts}, census);
        EXPECT_EQ(MostRows(census, placement), (census.total() + ranks - 1) / ranks)
            << ranks << experts << seed;
        // Each replica makes a rank equal or takes all that one has of an expert.
        EXPECT_LE(Replicas(placement).size(), static_cast<std::size_t>(ranks + experts));
      }
    }
  }
}

TEST(BalancedTest, Tolerance) {
  const Census census(2, 2, {60, 0, 60, 100});  // 120 | 100
  PlannerOptions options = {.policy = PlacementPolicy::kBalanced, .replica_slots = 1};
  EXPECT_EQ(MostRows(census, PlanPlacement(options, census)), 110);
  options.overload_tolerance = 0.1;  // 121
  EXPECT_EQ(MostRows(census, PlanPlacement(options, census)), 120);
  options.overload_tolerance = 0.08;  // 118.8
  EXPECT_EQ(MostRows(census, PlanPlacement(options, census)), 110);
}

TEST(BalancedTest, NearTheBestOfAllPlacements) {
  int best = 0, fewest = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Census census = RandomCensus(seed, 3, 4, 100);
    std::int64_t least = census.total();
    std::size_t replicas = 8;
    ForAllPlacements(3, 4, 1, [&](const std::vector<std::pair<int, int>>& chosen) {
      ExpertPlacement placement = Placed(3, 4, chosen);
      ShareRows(census, Sharing::kEqual, placement);
      const std::int64_t most = MostRows(census, placement);
      if (most < least) least = most, replicas = chosen.size();
      if (most == least) replicas = std::min(replicas, chosen.size());
    });
    const ExpertPlacement placement =
        PlanPlacement({.policy = PlacementPolicy::kBalanced, .replica_slots = 1}, census);
    EXPECT_GE(MostRows(census, placement), least);
    ++cases;
    if (MostRows(census, placement) != least) continue;
    ++best;
    if (Replicas(placement).size() == replicas) ++fewest;
  }
  EXPECT_GE(best, cases * 9 / 10);
  EXPECT_GE(fewest, best * 8 / 10);
}

TEST(PlannerTest, AllPoliciesKeepTheirPromises) {
  for (const PlacementPolicy policy : kPolicies) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const int ranks = 1 + static_cast<int>(seed % 5), experts = 1 + static_cast<int>(seed % 11);
      const int slots = static_cast<int>(seed % 4);
      const Census census = RandomCensus(seed, ranks, experts, 300);
      const PlannerOptions options = {.policy = policy, .replica_slots = slots, .cost = CostOfSeed(seed)};
      const ExpertPlacement placement = PlanPlacement(options, census);
      std::int64_t rows = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_LE(placement.replicas(rank), policy == PlacementPolicy::kHome ? 0 : slots);
        for (const std::int64_t r : placement.RowsOfSlots(rank, census)) rows += r;
      }
      EXPECT_EQ(rows, census.total());
      EXPECT_EQ(PlanPlacement(options, census), placement);
    }
  }
}

// The replicas of the previous micro-batch stay, and shares are those of the new census.
TEST(PlannerTest, PreviousReplicasStay) {
  for (const PlacementPolicy policy : kPolicies) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const PlannerOptions options = {.policy = policy, .replica_slots = 3, .cost = CostOfSeed(seed)};
      const ExpertPlacement previous = PlanPlacement({.policy = PlacementPolicy::kEplb, .replica_slots = 2},
                                                     RandomCensus(seed, 4, 9, 100));
      const Census census = RandomCensus(seed + 1000, 4, 9, 100);
      const ExpertPlacement placement = PlanPlacement(options, census, &previous);
      for (int rank = 0; rank < 4; ++rank) {
        const absl::Span<const int> before = previous.slots(rank), now = placement.slots(rank);
        ASSERT_LE(before.size(), now.size());
        EXPECT_EQ(before, now.subspan(0, before.size())) << "slots of rank " << rank;
        EXPECT_LE(placement.replicas(rank), 3);
        placement.RowsOfSlots(rank, census);  // checks the shares
      }
    }
  }
}

Census SpreadCensus(std::uint64_t seed) {
  const WorkloadOptions workload = {
      .workload = Workload::kSpread, .seed = seed, .experts = 32, .ranks = 4, .k = 2};
  Census census(4, 32);
  for (int rank = 0; rank < 4; ++rank) {
    for (const std::int64_t expert : ExpertIds(workload, 0, rank * 8192, 8192))
      ++census.at(rank, static_cast<int>(expert));
  }
  return census;
}

// Zipf 1.0 on 4 ranks with 32 experts, 8192 tokens a rank, top-2: seeds whose homes are overloaded twice.
TEST(PlannerTest, ReplicasBalanceSkewedExperts) {
  // A100s on NVLink, float16 experts of 1024 x 4096.
  const MoeCostModel cost = {.link_bytes_per_second = 250e9,
                             .latency_seconds = 10e-6,
                             .rank_flops_per_second = 150e12,
                             .width = 1024,
                             .hidden = 4096,
                             .element_bytes = 2};
  for (const std::uint64_t seed : {8, 12, 16, 30}) {
    const Census census = SpreadCensus(seed);
    const auto overload = [&](PlacementPolicy policy) {
      return ReportLoad(census, PlanPlacement({.policy = policy, .replica_slots = 6, .cost = cost}, census))
          .overload_factor;
    };
    EXPECT_NEAR(overload(PlacementPolicy::kHome), 2.0, 0.05) << seed;
    EXPECT_LE(overload(PlacementPolicy::kShadow), 1.05) << seed;
    EXPECT_LE(overload(PlacementPolicy::kEplb), 1.05) << seed;
    EXPECT_LE(overload(PlacementPolicy::kBalanced), 1.0001) << seed;
  }
}

// The plan of one step serves the next one's census, with other shares.
TEST(PlannerTest, StalePlacement) {
  for (const PlacementPolicy policy : kPolicies) {
    const PlannerOptions options = {.policy = policy, .replica_slots = 6, .cost = CostOfSeed(0)};
    ExpertPlacement placement = PlanPlacement(options, SpreadCensus(12));
    const ExpertPlacement slots = placement;
    const Census next = SpreadCensus(16);
    ShareRows(next, SharingOf(policy), placement);
    EXPECT_EQ(ReportLoad(next, placement).rows, next.total());
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(placement.slots(rank), slots.slots(rank));
    if (policy == PlacementPolicy::kHome) continue;
    EXPECT_GT(ReportLoad(next, placement).overload_factor, 1.05) << Name(policy);
    EXPECT_LT(ReportLoad(next, placement).overload_factor, 2.05) << Name(policy);
  }
  EXPECT_DEATH(PlanPlacement({}, Census(2, 4), std::vector{ExpertPlacement(2, 3)}.data()),
               "a previous placement of 3 experts on 2 ranks, a census of 4 and 2");
}

TEST(PlannerTest, BadOptions) {
  EXPECT_THAT(std::string(Validate({.replica_slots = -1}).message()),
              HasSubstr("replica slots per rank: -1; expected 0 or more"));
  EXPECT_THAT(std::string(Validate({.overload_tolerance = -0.5}).message()),
              HasSubstr("-0.5; expected 0 or more"));
  PlannerOptions options = {.policy = PlacementPolicy::kShadow, .cost = SmallCost()};
  EXPECT_TRUE(Validate(options).ok());
  options.cost.rank_flops_per_second = 0;
  EXPECT_THAT(std::string(Validate(options).message()),
              HasSubstr("rank_flops_per_second is 0; expected a positive"));
  options.policy = PlacementPolicy::kEplb;
  EXPECT_TRUE(Validate(options).ok());
  PlacementPolicy parsed = PlacementPolicy::kHome;
  for (const PlacementPolicy policy : kPolicies) {
    EXPECT_TRUE(ParsePlacementPolicy(Name(policy), &parsed).ok());
    EXPECT_EQ(parsed, policy);
  }
  EXPECT_THAT(std::string(ParsePlacementPolicy("smart", &parsed).message()),
              HasSubstr("'smart'; expected home, shadow, eplb or balanced"));
}

}  // namespace
}  // namespace plait::moe
