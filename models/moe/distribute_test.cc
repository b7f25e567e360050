// Distributed experts: initial values equal those of one process, every rank refuses invalid options alike, with
// nothing changed, and rows of ranks and dropped rows are counted.
#include "models/moe/distribute.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/moe/moe_mlp.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/moe/router.h"
#include "parallel/tensor/parallelize.h"

namespace plait::moe {
namespace {

using comm::testing::World;
using ::testing::HasSubstr;

MoeOptions Options(int experts = 9) {
  MoeOptions options = {.hidden = 11, .gated = true, .shared_hidden = 5};
  options.gate = {.kind = GateKind::kNoisyTopK, .experts = experts, .k = 2};
  return options;
}

std::shared_ptr<gpt::Gpt> MakeModel(const MoeOptions& moe) {
  at::manual_seed(11);
  return std::make_shared<gpt::Gpt>(
      gpt::GptOptions{.vocab_size = 13, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 8, .moe = moe},
      at::kFloat);
}

comm::DeviceMesh MeshOf(int ep, int tp = 1) {
  const auto mesh = *comm::DeviceMesh::Create(World(), {{"dp_replicate", World().size() / tp}, {"tp", tp}});
  return *ExpertMesh(mesh, ep);
}

void Reset(models::ModuleModel& model) {
  for (std::size_t unit = 0; unit < model.units().size(); ++unit) {
    at::manual_seed(100 + unit);
    model.ResetParameters(unit);
  }
}

// Drawn again after experts were spread, on every mesh.
TEST(DistributeExperts, InitialValuesAreThoseOfOneRank) {
  const auto alone = MakeModel(Options());
  Reset(*alone);
  std::map<std::string, at::Tensor> expected;
  for (const models::ParameterUnit& unit : alone->units()) {
    for (const models::ParameterSpec& p : unit.parameters) expected[p.name] = p.tensor.detach();
  }
  const int ranks = World().size();
  for (const int tp : {1, 2}) {
    if (ranks % tp != 0) continue;
    for (int ep = 1; ep <= ranks / tp; ++ep) {
      if (ranks / tp % ep != 0) continue;
      SCOPED_TRACE(absl::StrCat("ep=", ep, " tp=", tp));
      const auto model = MakeModel(Options());
      const comm::DeviceMesh mesh = MeshOf(ep, tp);
      ASSERT_TRUE(
          tensor_parallel::Parallelize(*model, mesh, tensor_parallel::DefaultPlan(*model, tp), {}).ok());
      ASSERT_TRUE(DistributeExperts(*model, mesh).ok());
      const auto fill = [](const at::Tensor& t) { t.detach().fill_(std::nan("")); };
      for (const at::Tensor& p : model->parameters()) fill(p);
      Reset(*model);
      std::int64_t experts = 0;
      for (const models::ParameterUnit& unit : model->units()) {
        for (const models::ParameterSpec& p : unit.parameters) {
          EXPECT_TRUE(p.tensor.equal(models::LocalPart(expected.at(p.name), p.placement))) << p.name;
          if (p.name != "transformer.h.0.mlp.experts.out_bias") continue;
          experts = p.tensor.size(0);
        }
      }
      // The home experts of the definition, not of the placement.
      const int rank = mesh.axis("ep").rank(), first = 9 * rank / ep;
      EXPECT_EQ(experts, 9 * (rank + 1) / ep - first);
      for (const models::ParameterUnit& unit : model->units()) {
        for (const models::ParameterSpec& p : unit.parameters) {
          if (tp > 1 || p.name.find(".experts.") == std::string::npos) continue;
          EXPECT_TRUE(p.tensor.equal(expected.at(p.name).narrow(0, first, experts))) << p.name;
        }
      }
      std::int64_t all = experts;
      mesh.axis("ep").AllReduce(comm::BufferOf(absl::MakeSpan(&all, 1)));
      EXPECT_EQ(all, 9);
    }
  }
}

TEST(DistributeExperts, AReplicaCostsThisRanksPartOfAnExpert) {
  if (World().size() % 2 != 0) return;
  MoeOptions options = Options();
  options.hidden = 12;
  const auto model = MakeModel(options);
  const comm::DeviceMesh mesh = MeshOf(/*ep=*/1, /*tp=*/2);
  ASSERT_TRUE(tensor_parallel::Parallelize(*model, mesh, tensor_parallel::DefaultPlan(*model, 2), {}).ok());
  for (const MoeMlp* layer : model->moe_layers()) EXPECT_EQ(layer->options().planner.cost.hidden, 12);
  ASSERT_TRUE(DistributeExperts(*model, mesh).ok());
  for (const MoeMlp* layer : model->moe_layers()) EXPECT_EQ(layer->options().planner.cost.hidden, 6);
}

// The refusal, the same on all ranks, and nothing changed.
void ExpectRefused(const MoeOptions& options, const std::string& text, bool splits_sequences = false,
                   int tp = 1) {
  const auto model = MakeModel(options);
  const comm::DeviceMesh mesh = MeshOf(World().size() / tp, tp);
  if (tp > 1) {
    ASSERT_TRUE(
        tensor_parallel::Parallelize(*model, mesh, tensor_parallel::DefaultPlan(*model, tp), {}).ok());
  }
  const absl::Status status = DistributeExperts(*model, mesh, splits_sequences);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  EXPECT_EQ(model->moe_layers()[0]->experts().in.size(0), options.gate.experts);
}

TEST(DistributeExperts, BadOptionsAreRefused) {
  const int ranks = World().size();
  if (ranks == 1) return;
  MoeOptions options = Options(ranks - 1);
  options.gate.k = 1;
  ExpectRefused(options, absl::StrCat(ranks - 1, " experts for ", ranks, " ranks of ep"));
  options = Options();
  options.gate.capacity_factor = 1;
  ExpectRefused(options, "a capacity factor where cp splits sequences", /*splits_sequences=*/true);
  options = Options();
  options.hidden = 1;
  if (ranks % 2 == 0) ExpectRefused(options, "experts 1 wide for 2 ranks of tp", false, /*tp=*/2);
}

// Whatever differs on the last rank is named; what only plans is compared too, for all ranks must plan alike.
TEST(DistributeExperts, RanksWithOtherOptionsAreNamed) {
  const int ranks = World().size();
  if (ranks == 1) return;
  const bool last = World().rank() + 1 == ranks;
  const auto refused = [&](const std::string& text, const std::function<void(MoeOptions&)>& change) {
    MoeOptions options = Options();
    if (last) change(options);
    ExpectRefused(options, absl::StrCat("rank ", ranks - 1, " has "));
    ExpectRefused(options, text);
  };
  refused("k=3", [](MoeOptions& o) { o.gate.k = 3; });
  refused("gate top-k", [](MoeOptions& o) { o.gate.kind = GateKind::kTopK; });
  refused("12 wide", [](MoeOptions& o) { o.hidden = 12; });
  refused("2 chunks", [](MoeOptions& o) { o.chunks = 2; });
  refused("replicas eplb in 2 slots",
          [](MoeOptions& o) { o.planner = {.policy = PlacementPolicy::kEplb, .replica_slots = 2}; });
  refused("gated", [](MoeOptions& o) { o.gated = false; });
  refused("biases", [](MoeOptions& o) { o.bias = false; });
  refused("balance weight 0.5", [](MoeOptions& o) { o.gate.balance_weight = 0.5; });
  refused("z weight 0.5", [](MoeOptions& o) { o.gate.z_weight = 0.5; });
  refused("normalize", [](MoeOptions& o) { o.gate.normalizes = false; });
  refused("activation", [](MoeOptions& o) { o.activation = Activation::kRelu; });
  refused("tolerance 0.25", [](MoeOptions& o) { o.planner.overload_tolerance = 0.25; });
}

TEST(DistributeExperts, ARankWithoutExpertsIsNamed) {
  const int ranks = World().size();
  if (ranks == 1) return;
  const bool last = World().rank() + 1 == ranks;
  const auto model = MakeModel(last ? MoeOptions() : Options());
  const absl::Status status = DistributeExperts(*model, MeshOf(ranks));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("rank ", ranks - 1, " has no experts")));
}

TEST(ExpertMesh, GroupsThatDoNotDivideAreRefused) {
  const int ranks = World().size();
  const auto mesh = *comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"dp_shard", ranks}, {"tp", 1}});
  for (const int ep : {0, -1, ranks + 1, 2 * ranks, 5 * ranks}) {
    const auto made = ExpertMesh(mesh, ep);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << ep;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(absl::StrCat("ep=", ep, " for "))) << ep;
  }
  // Multiples of the shards that do not divide, and neither divisor nor multiple.
  EXPECT_FALSE(ExpertAxesOf(3, 2, 4).ok());
  EXPECT_FALSE(ExpertAxesOf(2, 6, 4).ok());
  EXPECT_FALSE(ExpertAxesOf(2, 4, 3).ok());
  EXPECT_TRUE(ExpertAxesOf(2, 4, 8).ok());
  const auto none = ExpertMesh(*comm::DeviceMesh::Create(World(), {{"pp", ranks}}), 1);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MoeOptions, OnesThatCannotBeAreNamed) {
  const auto refused = [](const std::string& text, const std::function<void(MoeOptions&)>& change) {
    MoeOptions options = Options();
    change(options);
    const absl::Status status = Validate(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  refused("k is 10", [](MoeOptions& o) { o.gate.k = 10; });
  refused("0 wide", [](MoeOptions& o) { o.hidden = 0; });
  refused("0 chunks", [](MoeOptions& o) { o.chunks = 0; });
  refused("-1 wide", [](MoeOptions& o) { o.shared_hidden = -1; });
  refused("capacity", [](MoeOptions& o) { o.gate.capacity_factor = -1; });
  refused("slots", [](MoeOptions& o) { o.planner.replica_slots = -1; });
}

// Logits that are not finite on one rank are counted on all, and go to no expert.
TEST(RouteTokens, NotFiniteLogitsOfOneRank) {
  const int ranks = World().size();
  at::Tensor logits = at::full({3, 4}, 1.0, at::kFloat);
  logits[1][2] = 2;
  if (World().rank() + 1 == ranks) logits[2][0] = std::numeric_limits<float>::infinity();
  const RoutedTokens routed =
      RouteTokens({.experts = 4, .k = 2}, {.data = World(), .group = ranks}, logits, {.training = true});
  EXPECT_EQ(routed.not_finite, 1);
  EXPECT_EQ(routed.tokens, 3 * ranks);
  EXPECT_EQ(routed.census.total(), 2 * (3 * ranks - 1));
  EXPECT_EQ(routed.census.at(ranks - 1, 0), 2);
}

// Every token chooses expert 0; of each rank two choose expert 1 as well, and one expert 2.
TEST(RouteTokens, RowsOverCapacityAreDroppedFromTheLastTokens) {
  const int ranks = World().size();
  at::Tensor logits = at::zeros({3, 4}, at::kFloat);
  logits.select(1, 0).fill_(3);
  logits[0][1] = 2;
  logits[1][2] = 2;
  logits[2][1] = 2;
  const GateOptions options = {.experts = 4, .k = 2, .capacity_factor = 1};
  const TokenRanks all = {.data = World(), .group = ranks};
  const RoutedTokens routed = RouteTokens(options, all, logits, {.training = true});
  // By ranks - 1, with capacities of 2, 3, 5 and 6 rows.
  constexpr std::int64_t kDropped[] = {1, 3 + 1, 4 + 1, 6 + 2};
  constexpr std::int64_t kOfLastRank[] = {2, 0, 0, 0};  // kept of its rows to expert 0
  ASSERT_LE(ranks, 4);
  EXPECT_EQ(routed.dropped, kDropped[ranks - 1]);
  EXPECT_EQ(routed.census.total(), 6 * ranks - kDropped[ranks - 1]);
  EXPECT_EQ(routed.census.at(ranks - 1, 0), kOfLastRank[ranks - 1]);
  EXPECT_EQ(routed.rows_of_expert, (std::vector<std::int64_t>{3 * ranks, 2 * ranks, ranks, 0}));
  EXPECT_EQ(RouteTokens(options, all, logits, {.training = false}).dropped, 0);
}

TEST(MoeMlp, RowsOfARankAreThoseOfItsExperts) {
  const int ranks = World().size();
  const auto model = MakeModel(Options());
  ASSERT_TRUE(DistributeExperts(*model, MeshOf(ranks)).ok());
  at::manual_seed(static_cast<std::uint64_t>(World().rank()));
  const at::Tensor tokens = at::randint(13, {2, 8}, at::kLong);
  models::BlockState state = model->Prologue({tokens, tokens}, {});
  for (const auto& block : model->blocks()) state = block->Forward(state, {});
  model->EndStep(/*updated=*/true);
  for (const MoeMlp* layer : model->moe_layers()) {
    const std::vector<std::int64_t>& rows = layer->load().rows_of_expert;
    ASSERT_EQ(rows.size(), 9u);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 2 * 2 * 8 * ranks);
    std::vector<std::int64_t> expected;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto first = rows.begin() + 9 * rank / ranks, last = rows.begin() + 9 * (rank + 1) / ranks;
      expected.push_back(std::accumulate(first, last, std::int64_t{0}));
    }
    EXPECT_EQ(layer->load().rows_of_rank, expected);
  }
}

// A view of one element: as large as it says, without its memory.
TEST(RouteTokensDeathTest, MoreRowsThan32BitsCount) {
  if (World().size() > 1) return;  // MPI does not survive a fork
  const at::Tensor logits =
      at::empty({std::int64_t{1} << 30, 4}, at::TensorOptions(at::kMeta).dtype(at::kFloat));
  EXPECT_DEATH(RouteTokens({.experts = 4, .k = 2}, {}, logits, {}), "more rows than 32 bits count");
}

}  // namespace
}  // namespace plait::moe
