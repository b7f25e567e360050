// Combine is the transpose of dispatch; rows are sent once to each rank, with relays once to each node; the bytes that
// comm counts equal the formulas exactly. Nodes are given by hand. Values are integers, whose sums are exact.
#include "parallel/moe/exchange.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/testing/world.h"
#include "parallel/moe/layer.h"
#include "parallel/moe/placement.h"

namespace plait::moe {
namespace {

using comm::testing::World;

constexpr std::int64_t kWidth = 3, kValue = 8, kPlace = 3 * 4, kCounts = 2 * 8;  // bytes
constexpr int kSlots = 5;

// Which rows of which rank go where: the same on all ranks, by (rank, row) the (rank, slot)s.
using Problem = std::vector<std::vector<std::vector<std::pair<int, int>>>>;

struct Case {
  std::vector<int> nodes;
  int most_places = 4;      // of a row
  int rank_with_rows = -1;  // the others have none; -1: all have some
};
std::string TextOf(const Case& c) {
  return absl::StrCat("nodes ", absl::StrJoin(c.nodes, " "), ", at most ", c.most_places, " places, rows on ",
                      c.rank_with_rows);
}

class Random {
 public:
  explicit Random(unsigned seed = 17) : state_(seed) {}
  int Below(int n) { return static_cast<int>((state_ = state_ * 1664525 + 1013904223) >> 16) % n; }

 private:
  unsigned state_;
};

Problem MakeProblem(const Case& c) {
  Random random;
  const int n = World().size();
  Problem problem(n);
  for (int rank = 0; rank < n; ++rank) {
    problem[rank].resize(c.rank_with_rows >= 0 && rank != c.rank_with_rows ? 0 : 9 + 2 * rank);
    for (auto& row : problem[rank]) {
      // Some rows go nowhere, some to several slots of one rank.
      const int places = random.Below(std::min(c.most_places, n * kSlots) + 1);
      while (static_cast<int>(row.size()) < places) {
        const std::pair<int, int> place = {random.Below(n), random.Below(kSlots)};
        if (std::find(row.begin(), row.end(), place) == row.end()) row.push_back(place);
      }
    }
  }
  return problem;
}

RowPlaces PlacesOf(const std::vector<std::vector<std::pair<int, int>>>& rows) {
  RowPlaces places;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const auto& [rank, slot] : rows[row]) {
      places.rows.push_back(static_cast<std::int64_t>(row));
      places.ranks.push_back(rank);
      places.slots.push_back(slot);
    }
  }
  return places;
}

// Row `row` of `rank` says who it is.
at::Tensor Named(int rank, std::int64_t rows) {
  at::Tensor named = at::zeros({rows, kWidth}, at::kDouble);
  named.select(1, 0).fill_(rank);
  named.select(1, 1).copy_(at::arange(rows, at::kDouble));
  named.select(1, 2).fill_(7);
  return named;
}

at::Tensor Integers(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randint(-9, 10, shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble);
}

double Summed(double value) {
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&value, 1)));
  return value;
}
double Dot(const at::Tensor& a, const at::Tensor& b) { return (a * b).sum().item<double>(); }

// Wire bytes of all operations of the world's axis.
std::int64_t SentBytes() {
  std::int64_t bytes = 0;
  for (const comm::OperationStats& stats : World().stats().at(World().name())) bytes += stats.wire_bytes;
  return bytes;
}
template <typename Function>
std::int64_t SentBy(const Function& function) {
  const std::int64_t before = SentBytes();
  function();
  return SentBytes() - before;
}

std::vector<Case> Cases() {
  const int n = World().size();
  std::vector<std::vector<int>> layouts = {std::vector<int>(n, 0), {}, {}, {}};
  for (int rank = 0; rank < n; ++rank) {
    layouts[1].push_back(rank);               // a rank on each
    layouts[2].push_back(rank / 2);           // 2 + 2 + ...
    layouts[3].push_back(rank == 0 ? 0 : 1);  // 1 + the others
  }
  std::vector<Case> cases;
  for (const std::vector<int>& nodes : layouts) {
    for (const int places : {1, 4, 12}) cases.push_back({nodes, places});
    cases.push_back({nodes, 4, /*rank_with_rows=*/n - 1});
  }
  return cases;
}

// Routes of rows: the ranks after the first hop, and those after the second, in order. Written from the definition: the
// i-th rank of a node sends to the i-th (modulo their number) of each other node.
struct Route {
  explicit Route(const Case& c) : nodes(c.nodes) {
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
      of_node[nodes[rank]].push_back(static_cast<int>(rank));
    relays = of_node.size() > 1 && of_node.size() < nodes.size();
  }
  int Relay(int from, int to) const {
    if (!relays) return to;
    const std::vector<int>& own = of_node.at(nodes[from]);
    const auto number = std::find(own.begin(), own.end(), from) - own.begin();
    const std::vector<int>& there = of_node.at(nodes[to]);
    return there[number % there.size()];
  }
  std::vector<int> nodes;
  std::map<int, std::vector<int>> of_node;
  bool relays = false;
};

struct Expected {
  std::int64_t rows = 0, places = 0;  // that a rank sends to others, in all hops
  std::int64_t between_nodes = 0;     // of these rows
};

// Of `rank`: each row once to each relay, and by relays once to each rank.
Expected ExpectedOf(const Case& c, const Problem& problem, int rank) {
  const Route route(c);
  Expected expected;
  for (int source = 0; source < World().size(); ++source) {
    for (const auto& row : problem[source]) {
      std::set<std::pair<int, int>> hops;  // (from, to)
      for (const auto& [to, slot] : row) {
        const int relay = route.Relay(source, to);
        for (const auto& hop : {std::pair(source, relay), std::pair(relay, to)}) {
          if (hop.first != rank || hop.second == rank) continue;
          hops.insert(hop);
          ++expected.places;
        }
      }
      expected.rows += static_cast<std::int64_t>(hops.size());
      for (const auto& [from, to] : hops) expected.between_nodes += c.nodes[from] != c.nodes[to] ? 1 : 0;
    }
  }
  return expected;
}

TEST(RowExchange, RowsComeOnceToEachRankAndSlots) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(TextOf(c));
    const Problem problem = MakeProblem(c);
    const int me = World().rank();
    const auto rows = static_cast<std::int64_t>(problem[me].size());
    const RowExchange exchange(ExchangeRanks(World(), c.nodes), PlacesOf(problem[me]), rows);
    const at::Tensor received = exchange.Dispatch(Named(me, rows));
    const RowPlaces& places = exchange.received();
    ASSERT_EQ(received.size(0), exchange.received_rows());
    ASSERT_TRUE(std::is_sorted(places.rows.begin(), places.rows.end()));
    // (source, row) -> slots, as they came and as they were sent.
    std::map<std::pair<int, int>, std::vector<int>> came, sent;
    std::set<std::pair<int, int>> distinct;
    for (std::int64_t i = 0; i < received.size(0); ++i) {
      EXPECT_EQ(received[i][2].item<double>(), 7);
      EXPECT_TRUE(distinct.insert({received[i][0].item<int>(), received[i][1].item<int>()}).second)
          << "twice";
    }
    for (std::size_t a = 0; a < places.size(); ++a) {
      EXPECT_EQ(places.ranks[a], me);
      const at::Tensor row = received[places.rows[a]];
      came[{row[0].item<int>(), row[1].item<int>()}].push_back(places.slots[a]);
    }
    for (int source = 0; source < World().size(); ++source) {
      for (std::size_t row = 0; row < problem[source].size(); ++row) {
        for (const auto& [rank, slot] : problem[source][row]) {
          if (rank == me) sent[{source, static_cast<int>(row)}].push_back(slot);
        }
      }
    }
    // A group of one keeps its rows that go nowhere.
    const bool alone = World().size() == 1;
    EXPECT_TRUE(alone || distinct.size() == sent.size());
    EXPECT_EQ(came, sent);
  }
}

TEST(RowExchange, CombineIsTheTransposeOfDispatch) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(TextOf(c));
    const Problem problem = MakeProblem(c);
    const int me = World().rank();
    const auto rows = static_cast<std::int64_t>(problem[me].size());
    const RowPlaces places = PlacesOf(problem[me]);
    const auto count = static_cast<std::int64_t>(places.size());
    const RowExchange exchange(ExchangeRanks(World(), c.nodes), places, rows);
    const auto received_places = static_cast<std::int64_t>(exchange.received().size());
    for (const std::int64_t width : {1, 5}) {
      const at::Tensor a = Integers({rows, width}, 100 + me);
      const at::Tensor b = Integers({exchange.received_rows(), width}, 200 + me);
      EXPECT_EQ(Summed(Dot(exchange.Combine(b), a)), Summed(Dot(b, exchange.Dispatch(a))));
    }
    const at::Tensor a = Integers({count}, 300 + me), b = Integers({received_places}, 400 + me);
    EXPECT_EQ(Summed(Dot(exchange.CombinePlaces(b), a)), Summed(Dot(b, exchange.DispatchPlaces(a))));
    // Places are a permutation, and rows come back once from each rank that has them.
    EXPECT_TRUE(exchange.CombinePlaces(exchange.DispatchPlaces(a)).equal(a));
    at::Tensor times = at::zeros({rows, kWidth}, at::kDouble);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::set<int> ranks;
      for (const auto& place : problem[me][row]) ranks.insert(place.first);
      times[row].fill_(World().size() == 1 ? 1 : static_cast<double>(ranks.size()));
    }
    EXPECT_TRUE(exchange.Combine(exchange.Dispatch(Named(me, rows))).equal(times * Named(me, rows)));
  }
}

// Several exchanges in flight at once, as with chunks.
TEST(RowExchange, PendingOnesDoNotDisturbEachOther) {
  const Case c = Cases()[9];
  const Problem problem = MakeProblem(c);
  const int me = World().rank();
  const auto rows = static_cast<std::int64_t>(problem[me].size());
  const RowExchange exchange(ExchangeRanks(World(), c.nodes), PlacesOf(problem[me]), rows);
  const at::Tensor a = Integers({rows, kWidth}, me), b = Integers({rows, kWidth}, 50 + me);
  RowExchange::Pending first = exchange.StartDispatch(a), second = exchange.StartDispatch(b);
  const at::Tensor of_a = first.Wait(), of_b = second.Wait();
  EXPECT_TRUE(of_a.equal(exchange.Dispatch(a)));
  EXPECT_TRUE(of_b.equal(exchange.Dispatch(b)));
  RowExchange::Pending back = exchange.StartCombine(of_a), other = exchange.StartCombine(of_b);
  EXPECT_TRUE(back.Wait().equal(exchange.Combine(of_a)));
  EXPECT_TRUE(other.Wait().equal(exchange.Combine(of_b)));
}

// Rows in another order: the same rows with the same results.
TEST(RowExchange, OrderOfRowsDoesNotMatter) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(TextOf(c));
    Problem problem = MakeProblem(c);
    const int me = World().rank();
    const auto rows = static_cast<std::int64_t>(problem[me].size());
    const at::Tensor x = Integers({rows, kWidth}, 30 + me);
    // What a slot makes of a row: the row times a number of (rank, slot).
    const auto result = [&](const std::vector<std::vector<std::pair<int, int>>>& targets,
                            const at::Tensor& input) {
      const RowExchange exchange(ExchangeRanks(World(), c.nodes), PlacesOf(targets), rows);
      const at::Tensor received = exchange.Dispatch(input);
      at::Tensor made = at::zeros(received.sizes(), received.options());
      const RowPlaces& places = exchange.received();
      for (std::size_t a = 0; a < places.size(); ++a) {
        made[places.rows[a]].add_(received[places.rows[a]] *
                                  (1 + places.slots[a] + kSlots * places.ranks[a]));
      }
      return exchange.Combine(made);
    };
    at::Tensor order = at::arange(rows, at::kLong);
    Random random;
    for (std::int64_t i = rows - 1; i > 0; --i) {
      const std::int64_t j = random.Below(static_cast<int>(i) + 1);
      const at::Tensor kept = order[i].clone();
      order[i].copy_(order[j]);
      order[j].copy_(kept);
    }
    std::vector<std::vector<std::pair<int, int>>> shuffled(rows);
    for (std::int64_t i = 0; i < rows; ++i) shuffled[i] = problem[me][order[i].item<std::int64_t>()];
    EXPECT_TRUE(
        result(problem[me], x).index_select(0, order).equal(result(shuffled, x.index_select(0, order))));
    at::Tensor expected = at::zeros(x.sizes(), x.options());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const auto& [rank, slot] : problem[me][row])
        expected[row].add_(x[row] * (1 + slot + kSlots * rank));
    }
    EXPECT_TRUE(result(problem[me], x).equal(expected));
  }
}

TEST(RowExchangeBytes, AreThoseOfTheFormula) {
  const int n = World().size();
  if (n == 1) return;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(TextOf(c));
    const Problem problem = MakeProblem(c);
    const int me = World().rank();
    const auto rows = static_cast<std::int64_t>(problem[me].size());
    const Expected expected = ExpectedOf(c, problem, me);
    const RowPlaces places = PlacesOf(problem[me]);
    const ExchangeRanks ranks(World(), c.nodes);
    EXPECT_EQ(ranks.two_level(), Route(c).relays);
    const int hops = ranks.two_level() ? 2 : 1;
    std::optional<RowExchange> exchange;
    EXPECT_EQ(SentBy([&] { exchange.emplace(ranks, places, rows); }),
              hops * (n - 1) * kCounts + expected.places * kPlace);
    EXPECT_EQ(exchange->sent_rows(), expected.rows);
    at::Tensor received, of_places;
    const at::Tensor x = Integers({rows, kWidth}, me);
    EXPECT_EQ(SentBy([&] { received = exchange->Dispatch(x); }), expected.rows * kWidth * kValue);
    // What comes back is what others have sent here.
    Expected all;
    for (int rank = 0; rank < n; ++rank) {
      const Expected of = ExpectedOf(c, problem, rank);
      all.rows += of.rows;
      all.between_nodes += of.between_nodes;
    }
    const std::int64_t back = SentBy([&] { exchange->Combine(received); });
    const std::int64_t places_out = SentBy([&] {
      of_places = exchange->DispatchPlaces(Integers({static_cast<std::int64_t>(places.size())}, me));
    });
    const std::int64_t places_back = SentBy([&] { exchange->CombinePlaces(of_places); });
    EXPECT_EQ(places_out, expected.places * kValue);
    EXPECT_EQ(Summed(static_cast<double>(back)), static_cast<double>(all.rows * kWidth * kValue));
    EXPECT_EQ(Summed(static_cast<double>(places_back)), Summed(static_cast<double>(places_out)));
    // Once to each node, whatever the number of experts there.
    std::set<std::tuple<int, std::size_t, int>> crossings;
    for (int source = 0; source < n; ++source) {
      for (std::size_t row = 0; row < problem[source].size(); ++row) {
        for (const auto& [rank, slot] : problem[source][row]) {
          if (c.nodes[rank] != c.nodes[source]) crossings.insert({source, row, c.nodes[rank]});
        }
      }
    }
    EXPECT_EQ(all.between_nodes, static_cast<std::int64_t>(crossings.size()));
  }
}

// Of a whole step of the layer, forward and backward: each row four times, its weight and the weight's gradient once; the same
// where the backward pass comes in two parts.
TEST(ExpertLayerBytes, AreThoseOfTheFormula) {
  const int n = World().size(), me = World().rank();
  if (n == 1) return;
  constexpr int kExperts = 8, kK = 3, kChunks = 2;
  constexpr std::int64_t kTokens = 10, kHidden = 4;
  for (const Case& c : Cases()) {
    if (c.most_places != 4) continue;
    for (const bool two_parts : {false, true}) {
      SCOPED_TRACE(TextOf(c) + (two_parts ? ", two parts" : ""));
      const ExpertPlacement placement(n, kExperts);
      at::Tensor experts = at::zeros({kTokens, kK}, at::kLong);
      Problem problem(n);
      for (int rank = 0; rank < n; ++rank) {
        Random random(rank);
        for (std::int64_t t = 0; t < kTokens; ++t) {
          problem[rank].emplace_back();
          const int first = random.Below(kExperts);
          for (int j = 0; j < kK; ++j) {
            const int e = (first + 2 * j) % kExperts;
            problem[rank].back().emplace_back(placement.home_rank(e), e);
            if (rank == me) experts[t][j] = e;
          }
        }
      }
      const auto leaf = [](const at::Tensor& t) { return t.requires_grad_(true); };
      const at::Tensor x = leaf(Integers({kTokens, kWidth}, me)), weights = leaf(Integers({kTokens, kK}, me));
      const std::int64_t count = placement.home_experts(me);
      const ExpertWeights home = {.in = leaf(Integers({count, kHidden, kWidth}, 1)),
                                  .out = leaf(Integers({count, kWidth, kHidden}, 2))};
      const ExpertLayer layer(ExchangeRanks(World(), c.nodes), {.experts = kExperts, .chunks = kChunks});
      const std::int64_t sent = SentBy([&] {
        const at::Tensor y = layer.Forward(x, experts, weights, home, placement);
        if (!two_parts) return y.backward(at::ones_like(y));
        const at::Tensor gradient = at::ones_like(y);
        torch::autograd::grad({y}, {x, weights}, {gradient}, /*retain_graph=*/true);
        torch::autograd::grad({y}, {home.in, home.out}, {gradient});
      });
      std::int64_t rows = 0, places = 0;
      for (int rank = 0; rank < n; ++rank) {
        const Expected of = ExpectedOf(c, problem, rank);
        rows += of.rows;
        places += of.places;
      }
      const int hops = Route(c).relays ? 2 : 1;
      EXPECT_EQ(Summed(static_cast<double>(sent)),
                static_cast<double>(4 * rows * kWidth * kValue + places * (kPlace + 2 * kValue) +
                                    kChunks * n * hops * (n - 1) * kCounts));
    }
  }
}

}  // namespace
}  // namespace plait::moe
