// Checkpoints know logical experts: saved on 4 ranks, with replicas of experts or sharded states, loaded on 1, 2 and 3, where
// training goes on as on one rank that was not interrupted: parameters, moments of AdamW, and biases of routers.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/moe/moe_mlp.h"
#include "parallel/checkpoint/save.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/training_state/training_state.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::BlockState;
using parallel::Strategy;

constexpr int kBefore = 3, kAfter = 3;
constexpr std::int64_t kSamples = 12, kSequence = 5, kVocabulary = 13;
constexpr double kTolerance = 1e-12;

struct Setting {
  int ranks = 1, ep = 1;
  Strategy strategy = Strategy::kDdp;
  bool replicas = false;
  std::string Text() const {
    return absl::StrCat(ranks, " ranks ep", ep, " ", Name(strategy), replicas ? " replicas" : "");
  }
};

std::shared_ptr<gpt::Gpt> MakeModel(const Setting& s, std::uint64_t seed) {
  at::manual_seed(seed);
  moe::MoeOptions moe = {.hidden = 6};
  moe.gate = {.kind = moe::GateKind::kBias, .experts = 7, .k = 2, .z_weight = 0.1, .bias_rate = 0.05};
  if (s.replicas) moe.planner = {.policy = moe::PlacementPolicy::kEplb, .replica_slots = 2};
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = 2,
                                                    .n_head = 2,
                                                    .n_embd = 8,
                                                    .bias = true,
                                                    .moe = moe},
                                    at::kDouble);
}

class Training {
 public:
  // Other `seed`s: other initial values.
  Training(const comm::Communicator& group, const Setting& s, std::uint64_t seed = 11)
      : group_(group), model_(MakeModel(s, seed)) {
    const char* axis = s.strategy == Strategy::kDdp ? "dp_replicate" : "dp_shard";
    const auto mesh = *moe::ExpertMesh(*comm::DeviceMesh::Create(group, {{axis, s.ranks}, {"tp", 1}}), s.ep);
    EXPECT_TRUE(moe::DistributeExperts(*model_, mesh).ok());
    dp = *parallel::DataParallel::Create(mesh, model_->units(), {.strategy = s.strategy, .part_bytes = 512});
    optimizer = std::make_unique<parallel::ShardedOptimizer>(
        *dp, parallel::ShardedOptimizerOptions{.lr = 1e-2, .epsilon = 1e-3, .weight_decay = 0.1});
  }

  void Steps(int first, int count) {
    for (int step = first; step < first + count; ++step) {
      at::manual_seed(1 + step);
      const at::Tensor text = at::randint(kVocabulary, {kSamples, kSequence + 1}, at::kLong);
      const std::int64_t mine = kSamples / group_.size(), begin = mine * group_.rank();
      models::Batch batch = {text.narrow(0, begin, mine).narrow(1, 0, kSequence).contiguous(),
                             text.narrow(0, begin, mine).narrow(1, 1, kSequence).contiguous()};
      batch.random = {.seed = static_cast<std::uint64_t>(step), .first_sample = begin};
      const auto run = [&](std::size_t block, const BlockState& x, const models::BlockContext& at) {
        return dp->Run(
            block, [&](const BlockState& in) { return model_->blocks()[block]->Forward(in, at); }, x);
      };
      dp->Backward(
          dp->Forward([&] { return models::RunModel(*model_, batch, run).sum / (kSamples * kSequence); }));
      EXPECT_TRUE(optimizer->Step({.clip_norm = 0.1}).status.ok());
      model_->EndStep(/*updated=*/true);
    }
    dp->WaitForParameters();
  }

  std::unique_ptr<parallel::DataParallel> dp;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer;

 private:
  comm::Communicator group_;
  std::shared_ptr<gpt::Gpt> model_;
};

using Tensors = std::map<std::string, at::Tensor>;

// Of a run on one rank: all parameters and buffers, and moments by "NAME 0", "NAME 1".
Tensors StateOf(Training& training) {
  Tensors state;
  training.dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) state[p.name] = p.tensor.detach().clone();
  });
  const absl::Status visited = training.optimizer->ForEachShard(
      /*changes=*/false, [&](std::size_t i, const std::vector<at::Tensor>& moments) {
        const parallel::Shard& shard = training.dp->shards()[i];
        for (const parallel::FlatSlice& slice : shard.layout->Slices(shard.rank)) {
          const models::ParameterSpec& p = *shard.parameters[slice.parameter];
          for (std::size_t m = 0; m < moments.size(); ++m) {
            state[absl::StrCat(p.name, " ", m)] = moments[m]
                                                      .narrow(0, slice.shard_offset, slice.end - slice.begin)
                                                      .clone()
                                                      .view(state.at(p.name).sizes());
          }
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(visited.ok()) << visited;
  return state;
}

void ExpectNear(const at::Tensor& expected, const at::Tensor& actual, double scale, const std::string& what) {
  if (expected.numel() == 0) return;
  EXPECT_LE((expected - actual).abs().max().item<double>(), kTolerance * scale) << what;
}

void ExpectState(Training& training, const Tensors& expected) {
  std::map<std::string, models::Placement> placements;
  training.dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) {
      placements[p.name] = p.placement;
      const at::Tensor& whole = expected.at(p.name);
      const at::Tensor part = models::LocalPart(whole, p.placement);
      ASSERT_EQ(part.sizes(), p.tensor.sizes()) << p.name;
      if (p.role == models::ParameterRole::kBuffer) {
        EXPECT_TRUE(p.tensor.equal(part)) << p.name;
        EXPECT_GT(whole.abs().max().item<double>(), 0) << p.name << " has not moved";
      } else {
        ExpectNear(part, p.tensor.detach(), whole.abs().max().item<double>(), p.name);
      }
    }
  });
  std::int64_t compared = 0;
  const absl::Status visited = training.optimizer->ForEachShard(
      /*changes=*/false, [&](std::size_t i, const std::vector<at::Tensor>& moments) {
        const parallel::Shard& shard = training.dp->shards()[i];
        for (const parallel::FlatSlice& slice : shard.layout->Slices(shard.rank)) {
          const std::string& name = shard.parameters[slice.parameter]->name;
          for (std::size_t m = 0; m < moments.size(); ++m) {
            const at::Tensor& whole = expected.at(absl::StrCat(name, " ", m));
            ExpectNear(
                models::LocalPart(whole, placements.at(name)).flatten().slice(0, slice.begin, slice.end),
                moments[m].narrow(0, slice.shard_offset, slice.end - slice.begin),
                whole.abs().max().item<double>(), absl::StrCat("moment ", m, " of ", name));
            compared += slice.end - slice.begin;
          }
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(visited.ok()) << visited;
  EXPECT_GT(compared, 0);
}

TEST(ExpertState, IsLoadedOnOtherNumbersOfRanks) {
  Training alone(comm::Communicator::Self(), {});
  alone.Steps(0, kBefore);
  const Tensors halfway = StateOf(alone);
  alone.Steps(kBefore, kAfter);
  const Tensors expected = StateOf(alone);
  std::vector<comm::Communicator> groups;  // of the first 1, 2, 3, 4 ranks
  for (int ranks = 1; ranks <= World().size(); ++ranks) {
    const bool inside = World().rank() < ranks;
    groups.push_back(World().Split(inside ? 0 : -1, World().rank(), absl::StrCat("first", ranks)));
  }
  for (const Setting& from : {Setting{4, 4, Strategy::kDdp, true}, Setting{4, 2, Strategy::kFsdp},
                              Setting{4, 4, Strategy::kFsdp, true}, Setting{4, 2, Strategy::kDdp, true}}) {
    const std::string root = ::testing::TempDir() + "/expert_state";
    if (World().rank() == 0) std::filesystem::remove_all(root);
    World().Barrier();
    {
      Training training(World(), from);
      training.Steps(0, kBefore);
      SCOPED_TRACE(from.Text());
      ExpectState(training, halfway);
      const auto pieces = parallel::PiecesOf(*training.dp, training.optimizer.get());
      ASSERT_TRUE(pieces.ok()) << pieces.status();
      const auto saved =
          parallel::SaveCheckpoint(World(), root, 1, *pieces, {.integers = {{"optimizer.step", kBefore}}});
      ASSERT_TRUE(saved.ok()) << saved.status();
    }
    for (const Setting& to :
         {Setting{1, 1}, Setting{2, 2, Strategy::kDdp, true}, Setting{2, 1, Strategy::kFsdp}, Setting{3, 3},
          Setting{3, 3, Strategy::kFsdp, true}, Setting{3, 1, Strategy::kZero1},
          Setting{4, 2, Strategy::kFsdp}}) {
      if (World().rank() >= to.ranks) continue;
      SCOPED_TRACE(from.Text() + " to " + to.Text());
      Training training(groups[to.ranks - 1], to, /*seed=*/99);
      absl::StatusOr<parallel::Checkpoint> checkpoint = parallel::Checkpoint::Open(root + "/step-000000001");
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      const absl::Status restored = parallel::Restore(*checkpoint, *training.dp, training.optimizer.get());
      ASSERT_TRUE(restored.ok()) << restored;
      EXPECT_EQ(training.optimizer->steps(), kBefore);
      ExpectState(training, halfway);
      training.Steps(kBefore, kAfter);
      ExpectState(training, expected);
    }
    World().Barrier();
  }
}

}  // namespace
}  // namespace plait::parity
