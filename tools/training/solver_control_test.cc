// The control of a solver's bias over ranks with different data, and what evaluations between steps are solved with.
#include "tools/training/solver_control.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "tools/training/sharded_model.h"

namespace plait::training {
namespace {

using comm::testing::World;

constexpr std::int64_t kBlocks = 16, kTokens = 11, kSeq = 8;

struct TestSettings final : Settings {
  void Bind(SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>&) const override { return absl::OkStatus(); }
  std::vector<std::string> mesh_axes() const override { return {"lp"}; }
  std::string default_axis() const override { return "lp"; }
};

// Two groups of ranks, each with its own data.
TestSettings Controlled() {
  TestSettings settings;
  settings.dtype = "float64";
  settings.mesh = "dp_replicate=2,lp=" + std::to_string(World().size() / 2);
  settings.lp.force = true;
  settings.lp.cfactor = {2};
  settings.lp.iterations = settings.lp.forward_iterations = 2;
  settings.lp.bias_limit = 0.1;
  settings.lp.bias_every = 1;
  return settings;
}

class Subject {
 public:
  explicit Subject(const TestSettings& settings)
      : mesh_(*comm::DeviceMesh::Create(World(), *settings.Axes(World().size()))) {
    gpt::GptOptions gpt;
    gpt.vocab_size = kTokens;
    gpt.block_size = kSeq;
    gpt.n_layer = kBlocks;
    gpt.n_head = 2;
    gpt.n_embd = 8;
    model_ = std::make_unique<gpt::Gpt>(gpt, at::TensorOptions(settings.compute_type()).device(at::kMeta));
    TrainedModel trained = {.model = model_.get(), .optimizer = {.lr = 1e-3}};
    trained.run_block = [this](std::size_t block, const models::BlockState& in,
                               const models::BlockContext& context) {
      models::BlockState out = model_->blocks()[block]->Forward(in, context);
      const bool fails = diverges && context.level > 0;
      if (fails) out.hidden = out.hidden * std::numeric_limits<double>::infinity();
      return out;
    };
    sharded_ = *ShardedModel::Create(settings, mesh_, at::kCPU, trained);
    control_.emplace(settings.lp, World(), /*ranks_on_host=*/1);
    control_->Begin(*sharded_);
  }
  ~Subject() { sharded_->WaitForParameters(); }

  // Returns the measured bias.
  double Step(std::int64_t step) {
    control_->RunMicroBatches(step, [&](int) {
      at::manual_seed(static_cast<std::uint64_t>(step));
      const models::Batch batch = {at::randint(kTokens, {3, kSeq}, at::kLong),
                                   at::randint(kTokens, {3, kSeq}, at::kLong)};
      return parallel::PipelineMicroBatch{sharded_->OnDevice(batch), 1 / 24.0};
    });
    EXPECT_TRUE(sharded_->Step({.clip_norm = 1}).status.ok());
    std::vector<data::Scalar> scalars;
    control_->TakeStep(scalars);
    return scalars.back().value;
  }
  SolverControl& control() { return *control_; }
  const comm::DeviceMesh& mesh() const { return mesh_; }

  bool diverges = false;  // coarse steps of this rank are infinite

 private:
  comm::DeviceMesh mesh_;
  std::unique_ptr<models::BlockModel> model_;
  std::unique_ptr<ShardedModel> sharded_;
  std::optional<SolverControl> control_;
};

TEST(BiasControl, TakesASolveThatDivergesForSomeDataAsDivergedForAll) {
  Subject subject(Controlled());
  const double bias = subject.Step(0);
  EXPECT_TRUE(std::isfinite(bias)) << bias;
  subject.diverges = subject.mesh().axis("dp_replicate").rank() == 1;
  EXPECT_TRUE(std::isnan(subject.Step(1)));
  EXPECT_NE(subject.control().Line().find("gradient bias nan"), std::string::npos)
      << subject.control().Line();
}

}  // namespace
}  // namespace plait::training
