#include "tools/moe_bench/exact_check.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "parallel/moe/layer.h"
#include "parallel/moe/planner.h"

namespace plait::moe_bench {
namespace {

constexpr std::int64_t kWidth = 8, kHidden = 12, kTokensOfRank = 37;
constexpr const char* kNames[] = {"output",
                                  "gradient of x",
                                  "gradient of weights",
                                  "gradient of htoh4's weight",
                                  "gradient of htoh4's bias",
                                  "gradient of h4toh's weight",
                                  "gradient of h4toh's bias"};

// Inputs and weights of the whole problem, the same on every rank.
struct Problem {
  at::Tensor x, weights, ids, gradient;
  moe::ExpertWeights experts;
};

Problem MakeProblem(const Config& config, int experts, int ranks) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(config.seed + 1);
  const at::ScalarType type = config.type == at::kDouble ? at::kDouble : at::kFloat;
  const auto integers = [&](at::IntArrayRef shape) { return at::randint(-3, 4, shape, generator, type); };
  const std::int64_t tokens = kTokensOfRank * ranks;
  Problem p = {
      .x = integers({tokens, kWidth}),
      .weights = at::full({tokens, config.top}, 0.5, type),
      .ids = at::rand({tokens, experts}, generator).argsort(1, false).narrow(1, 0, config.top).contiguous(),
      .gradient = integers({tokens, kWidth}),
      .experts = {}};
  // Skewed: a third of the tokens begins with expert 0.
  p.ids.slice(0, 0, tokens, 3)
      .copy_(at::arange(config.top, at::kLong).expand({(tokens + 2) / 3, config.top}));
  p.experts = {.in = integers({experts, kHidden, kWidth}),
               .in_bias = integers({experts, kHidden}),
               .out = integers({experts, kWidth, kHidden}),
               .out_bias = integers({experts, kWidth})};
  return p;
}

at::Tensor Leaf(const at::Tensor& x) { return x.detach().clone().requires_grad_(true); }

// In the order of kNames.
using Results = std::vector<at::Tensor>;

Results Gathered(const at::Tensor& y, const at::Tensor& gradient, const std::vector<at::Tensor>& leaves) {
  y.backward(gradient);
  Results results = {y.detach()};
  for (const at::Tensor& leaf : leaves)
    results.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
  return results;
}

// The reference: evaluates every expert on every token.
Results OneProcess(const Problem& p) {
  const std::vector<at::Tensor> leaves = {Leaf(p.x),           Leaf(p.weights),
                                          Leaf(p.experts.in),  Leaf(p.experts.in_bias),
                                          Leaf(p.experts.out), Leaf(p.experts.out_bias)};
  at::Tensor y = at::zeros_like(p.x);
  for (std::int64_t e = 0; e < p.experts.in.size(0); ++e) {
    const at::Tensor wide = at::relu(at::matmul(leaves[0], leaves[2][e].t()) + leaves[3][e]);
    y = y + (leaves[1] * p.ids.eq(e)).sum(1, true) * (at::matmul(wide, leaves[4][e].t()) + leaves[5][e]);
  }
  return Gathered(y, p.gradient, leaves);
}

moe::Census CensusOf(const Problem& p, int experts, int ranks) {
  moe::Census census(ranks, experts);
  for (int rank = 0; rank < ranks; ++rank) {
    const at::Tensor counts =
        p.ids.narrow(0, kTokensOfRank * rank, kTokensOfRank).flatten().bincount({}, experts);
    for (int e = 0; e < experts; ++e) census.at(rank, e) = counts[e].item<std::int64_t>();
  }
  return census;
}

// Every expert on every rank, rows distributed round-robin.
moe::ExpertPlacement Everywhere(const moe::Census& census) {
  moe::ExpertPlacement placement(census.ranks(), census.experts());
  for (int e = 0; e < census.experts(); ++e) {
    for (int rank = 0; rank < census.ranks(); ++rank) {
      if (rank != placement.home_rank(e)) placement.AddReplica(e, rank);
    }
  }
  for (int source = 0; source < census.ranks(); ++source) {
    for (int e = 0; e < census.experts(); ++e) {
      std::vector<moe::RowShare> shares;
      for (std::int64_t row = 0; row < census.at(source, e); ++row) {
        const int rank = static_cast<int>((source + e + row) % census.ranks());
        shares.push_back({.rank = rank, .slot = placement.SlotOf(e, rank), .rows = 1});
      }
      placement.SetShares(source, e, shares);
    }
  }
  return placement;
}

std::vector<std::pair<std::string, moe::ExpertPlacement>> Placements(const Config& config,
                                                                     const moe::Census& census) {
  std::vector<std::pair<std::string, moe::ExpertPlacement>> all = {{"everywhere", Everywhere(census)}};
  // A link so fast that replicas pay.
  const moe::MoeCostModel cost = {
      .link_bytes_per_second = 1e12, .rank_flops_per_second = 1e6, .width = kWidth, .hidden = kHidden};
  for (const auto policy : {moe::PlacementPolicy::kHome, moe::PlacementPolicy::kShadow,
                            moe::PlacementPolicy::kEplb, moe::PlacementPolicy::kBalanced}) {
    all.emplace_back(
        moe::Name(policy),
        moe::PlanPlacement({.policy = policy, .replica_slots = config.replica_slots, .cost = cost}, census));
  }
  return all;
}

Results OnAllRanks(const Problem& p, const moe::ExchangeRanks& ranks, const moe::ExpertPlacement& placement,
                   int chunks) {
  const int me = ranks.comm().rank();
  const auto tokens = [&](const at::Tensor& t) { return t.narrow(0, kTokensOfRank * me, kTokensOfRank); };
  const auto home = [&](const at::Tensor& t) {
    return Leaf(t.narrow(0, placement.first_home_expert(me), placement.home_experts(me)));
  };
  const at::Tensor x = Leaf(tokens(p.x)), weights = Leaf(tokens(p.weights));
  const moe::ExpertWeights mine = {.in = home(p.experts.in),
                                   .in_bias = home(p.experts.in_bias),
                                   .out = home(p.experts.out),
                                   .out_bias = home(p.experts.out_bias)};
  const moe::ExpertLayer layer(
      ranks,
      {.experts = placement.experts(), .mlp = {.activation = moe::Activation::kRelu}, .chunks = chunks});
  const at::Tensor y = layer.Forward(x, tokens(p.ids).contiguous(), weights, mine, placement);
  return Gathered(y, tokens(p.gradient), {x, weights, mine.in, mine.in_bias, mine.out, mine.out_bias});
}

// Name of the first result of which this rank's part differs from `expected`, the whole; empty: none.
std::string FirstDifference(const Results& expected, const Results& mine,
                            const moe::ExpertPlacement& placement, int rank) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool of_tokens = i < 3;
    const std::int64_t first = of_tokens ? kTokensOfRank * rank : placement.first_home_expert(rank);
    if (!at::equal(expected[i].narrow(0, first, mine[i].size(0)), mine[i])) return kNames[i];
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> CheckExact(const Config& config, int local_experts,
                                       const moe::ExchangeRanks& ranks) {
  const int world = ranks.comm().size(), me = ranks.comm().rank(), experts = local_experts * world;
  const Problem problem = MakeProblem(config, experts, world);
  const Results expected = OneProcess(problem);
  int cases = 0, replicas = 0;
  for (const auto& [name, placement] : Placements(config, CensusOf(problem, experts, world))) {
    for (int rank = 0; rank < world; ++rank) replicas += placement.replicas(rank);
    for (const int chunks : {1, 3}) {
      ++cases;
      const std::string difference =
          FirstDifference(expected, OnAllRanks(problem, ranks, placement, chunks), placement, me);
      absl::Status status;
      if (!difference.empty()) {
        status = absl::InternalError(absl::StrCat("exact: ", experts, " experts, placement ", name, ", ",
                                                  chunks, " chunks: ", difference, " on rank ", me,
                                                  " differs from one process"));
      }
      PLAIT_RETURN_IF_ERROR(ranks.comm().Agree(status));
    }
  }
  return absl::StrCat("exact: ", experts, " experts on ", world, " ranks, ", cases,
                      " placements and chunkings with ", replicas,
                      " replicas: the same bits as one process\n");
}

}  // namespace plait::moe_bench
