// A solver's measured bias, its control over ranks with different data, the choice of --lp-auto, what evaluations
// between steps are solved with, and predictions on unequal hosts.
#include "tools/training/solver_control.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "parallel/checkpoint/save.h"
#include "tools/training/auto_solver.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_costs.h"
#include "tools/training/solver_search.h"
#include "tools/training/testing/layer_parallel_settings.h"

namespace plait::training {
namespace {

using comm::testing::World;

constexpr std::int64_t kBlocks = 16, kTokens = 11, kSeq = 8;

// Two groups of ranks, each with its own data.
LayerParallelTestSettings Controlled() {
  LayerParallelTestSettings settings;
  settings.mesh = "dp_replicate=2,lp=" + std::to_string(World().size() / 2);
  settings.lp.iterations = settings.lp.forward_iterations = 2;
  settings.lp.bias_limit = 0.1;
  settings.lp.bias_every = 1;
  return settings;
}

// A checkpoint with these integers, as all ranks see it.
parallel::Checkpoint CheckpointWith(const std::map<std::string, std::int64_t>& integers) {
  const std::string root = std::string(std::getenv("TEST_TMPDIR")) + "/checkpoints";
  static std::int64_t step = 0;
  const float value = 0;
  std::vector<parallel::TensorPiece> pieces;
  if (World().rank() == 0) {
    pieces.push_back({.tensor = {.group = "model", .name = "u", .shape = {1}}, .end = 1, .data = &value});
  }
  const auto saved = parallel::SaveCheckpoint(World(), root, ++step, pieces, {.integers = integers});
  EXPECT_TRUE(saved.ok()) << saved.status();
  return *parallel::Checkpoint::Open(saved->folder);
}

class Subject {
 public:
  explicit Subject(const LayerParallelTestSettings& settings)
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
      if (inexact && !context.final) out.hidden = out.hidden * 1.01;
      return out;
    };
    sharded_ = *ShardedModel::Create(settings, mesh_, at::kCPU, trained);
    control_.emplace(settings.lp, World(), /*ranks_on_host=*/1);
    control_->Begin(*sharded_);
  }
  ~Subject() { sharded_->WaitForParameters(); }

  // Returns the measured bias.
  double Step(std::int64_t step) { return Record(step, /*evaluates=*/false).back().value; }
  // What is recorded of a step, with an evaluation behind it.
  std::vector<data::Scalar> Record(std::int64_t step, bool evaluates) {
    control_->RunMicroBatches(step, MicroBatchesOf(step));
    EXPECT_TRUE(sharded_->Step({.clip_norm = 1}).status.ok());
    if (evaluates) sharded_->Loss(BatchOf(step + 100));
    std::vector<data::Scalar> scalars;
    control_->TakeStep(scalars);
    return scalars;
  }
  // Leaves the gradients of a step in the engine.
  void Differentiate(std::int64_t step, mgrit::Propagation propagation) {
    sharded_->solver()->set_propagation(propagation);
    sharded_->RunMicroBatches(MicroBatchesOf(step));
    sharded_->engine().SumPartialGradients();
  }
  // Evaluates; returns the iterations that it took, 0 for serial propagation, whose residual norm is 0.
  int IterationsOfEvaluation() {
    sharded_->Loss(BatchOf(0));
    const mgrit::Solution& solution = sharded_->solver()->last_forward();
    return solution.residual_norms == std::vector<double>{0} ? 0 : solution.iterations;
  }
  ShardedModel& sharded() { return *sharded_; }
  SolverControl& control() { return *control_; }
  const comm::DeviceMesh& mesh() const { return mesh_; }

  static models::Batch BatchOf(std::int64_t step) {
    at::manual_seed(static_cast<std::uint64_t>(step));
    return {at::randint(kTokens, {3, kSeq}, at::kLong), at::randint(kTokens, {3, kSeq}, at::kLong)};
  }

  bool diverges = false;  // coarse steps of this rank are infinite
  bool inexact = false;   // passes that are run again, exactly, have wrong steps, whatever the iterations
  double loss_factor = 1 / 24.0;

 private:
  parallel::NextMicroBatch MicroBatchesOf(std::int64_t step) {
    return [this, step](int) {
      return parallel::PipelineMicroBatch{sharded_->OnDevice(BatchOf(step)), loss_factor};
    };
  }

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

// As of a float16 step whose loss is scaled too much, and which is skipped.
TEST(BiasControl, GradientsThatOverflowSayNothing) {
  Subject subject(Controlled());
  subject.loss_factor = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(subject.Step(0)));  // nothing to record
  EXPECT_EQ(subject.control().Line(), "");
  EXPECT_EQ(subject.IterationsOfEvaluation(), 2);
}

TEST(BiasControl, OverflowsInATrialAreNoBias) {
  LayerParallelTestSettings settings = Controlled();
  settings.lp.chooses = true;
  Subject subject(settings);
  EXPECT_TRUE(std::isfinite(subject.Step(0)));
  subject.loss_factor = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(subject.Step(1)));  // not that of the step before
}

// |a - b| / |b| of gradients without data ranks: each rank has its own blocks, and all have the same root units.
double RelativeDistance(ShardedModel& a, ShardedModel& b) {
  double squares[2] = {};
  for (std::size_t i = 0; i < b.engine().shards().size(); ++i) {
    const parallel::Shard& shard = b.engine().shards()[i];
    if (!shard.of_block && World().rank() > 0) continue;
    const at::Tensor difference = a.engine().shards()[i].gradient - shard.gradient;
    squares[0] += difference.square().sum().item<double>();
    squares[1] += shard.gradient.square().sum().item<double>();
  }
  World().AllReduce(comm::BufferOf(absl::MakeSpan(squares)));
  return std::sqrt(squares[0] / squares[1]);
}

TEST(BiasControl, MeasuresTheDistanceRelativeToTheExactGradient) {
  LayerParallelTestSettings settings = Controlled();
  settings.mesh = "lp=" + std::to_string(World().size());
  settings.lp.iterations = settings.lp.forward_iterations = 1;
  Subject inexact(settings), exact(settings), measured(settings);
  inexact.Differentiate(0, mgrit::Propagation::kParallel);
  exact.Differentiate(0, mgrit::Propagation::kSerial);
  const double expected = RelativeDistance(inexact.sharded(), exact.sharded());
  EXPECT_GT(expected, 1e-9);
  // The same gradients, but for rounding, whose squares are added up in another order.
  EXPECT_NEAR(measured.Step(0) / expected, 1, 1e-9);
}

// No candidate is exact enough, however fast it is.
TEST(Choice, IsSerialWhereNoTrialKeepsTheLimit) {
  LayerParallelTestSettings settings = Controlled();
  settings.lp.chooses = true;
  settings.lp.bias_limit = 1e-9;
  Subject subject(settings);
  subject.inexact = true;
  constexpr std::int64_t kMostSteps = SolverSearch::kTrials * 21;  // 20 of a trial count
  for (std::int64_t step = 0; step < kMostSteps && subject.control().Line().empty(); ++step) {
    subject.Step(step);
  }
  EXPECT_NE(subject.control().Line().find("no gradient of "), std::string::npos) << subject.control().Line();
  EXPECT_NE(subject.control().Line().find(" tried is within 1e-09 of the exact one"), std::string::npos)
      << subject.control().Line();
}

// Exact gradients, which these steps take, leave the solver serial or one iteration further.
TEST(Evaluation, HasTheIterationsOfTheNextStepBehindAMeasurement) {
  for (const std::string reference : {"serial", "iteration"}) {
    LayerParallelTestSettings settings = Controlled();
    settings.lp.bias_reference = reference;
    settings.lp.bias_limit = 1e-9;  // raises them, the adjoint's first
    Subject subject(settings);
    EXPECT_EQ(subject.IterationsOfEvaluation(), 2);
    subject.Step(0);
    subject.Step(1);
    EXPECT_NE(subject.control().Line().find("next 3 forward and 3 backward"), std::string::npos)
        << subject.control().Line();
    EXPECT_EQ(subject.IterationsOfEvaluation(), 3) << reference;
  }
}

TEST(Evaluation, LeavesWhatIsRecordedOfTheStep) {
  LayerParallelTestSettings settings = Controlled();
  settings.lp.bias_limit = 0;
  Subject plain(settings), evaluated(settings);
  const std::vector<data::Scalar> expected = plain.Record(0, false), found = evaluated.Record(0, true);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].name);
    const bool is_nan = std::isnan(expected[i].value);
    EXPECT_TRUE(is_nan ? std::isnan(found[i].value) : found[i].value == expected[i].value)
        << found[i].name << ": " << found[i].value << ", expected " << expected[i].value;
  }
}

TEST(Evaluation, OfAResumedRunHasTheIterationsThatItRestores) {
  Subject subject(Controlled());
  const parallel::Checkpoint checkpoint = CheckpointWith(
      {{"solver.forward_iterations", 4}, {"solver.backward_iterations", 3}, {"solver.serial", 0}});
  ASSERT_TRUE(subject.control().Restore(checkpoint).ok());
  EXPECT_EQ(subject.IterationsOfEvaluation(), 4);
}

TEST(Evaluation, BetweenStepsOfATrialIsNotSerial) {
  LayerParallelTestSettings settings = Controlled();
  settings.lp.chooses = true;
  Subject subject(settings);
  subject.Step(0);
  EXPECT_EQ(subject.IterationsOfEvaluation(), 2);
}

// Two steps with too large a bias, then a limit that every bias keeps: fewer iterations, but not those just refused.
TEST(Resume, DoesNotTryTheIterationsThatWereRefused) {
  LayerParallelTestSettings strict = Controlled(), lax = Controlled();
  strict.lp.bias_limit = 1e-9;
  lax.lp.bias_limit = 1;
  Subject first(strict);
  first.Step(0);
  first.Step(1);
  parallel::CheckpointState state;
  first.control().Save(state);
  Subject resumed(lax);
  ASSERT_TRUE(resumed.control().Restore(CheckpointWith(state.integers)).ok());
  resumed.Step(0);
  EXPECT_NE(resumed.control().Line().find("next 3 forward and 3 backward"), std::string::npos)
      << resumed.control().Line();
  // Of an earlier version.
  state.integers.erase("solver.refused_sum");
  state.integers.erase("solver.refused_for");
  Subject older(lax);
  ASSERT_TRUE(older.control().Restore(CheckpointWith(state.integers)).ok());
  older.Step(0);
  EXPECT_NE(older.control().Line().find("next 2 forward and 3 backward"), std::string::npos)
      << older.control().Line();
}

// A step has been done, by a solver over all ranks. Each evaluation takes a second, so that messages take no time.
struct Measured {
  Measured() {
    subject.Step(0);
    work.seconds.values.fill(1);
    work.counts.values.fill(1);
  }
  static LayerParallelTestSettings OverAllRanks() {
    LayerParallelTestSettings settings = Controlled();
    settings.mesh = "lp=" + std::to_string(World().size());
    return settings;
  }
  LayerParallelTestSettings settings = OverAllRanks();
  Subject subject{settings};
  mgrit::WorkTimes work;
};

TEST(SolverCosts, AreThoseOfTheHostWithTheFewestCoresOnAllRanks) {
  Measured measured;
  const auto predicted = [&](int ranks_on_host) {
    return SolverCosts(measured.subject.sharded(), World(), measured.work, ranks_on_host)
        .Predict({.options = measured.settings.lp.Options()});
  };
  constexpr int kMany = 1 << 20;  // ranks that share a core
  const double few_cores = predicted(kMany);
  EXPECT_GT(few_cores, 1.2 * predicted(1));
  const double mixed = predicted(World().rank() == 0 ? 1 : kMany);
  EXPECT_NEAR(mixed, few_cores, 0.01 * few_cores);
  double least = mixed, largest = mixed;
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&least, 1)), comm::ReduceOp::kMin);
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&largest, 1)), comm::ReduceOp::kMax);
  EXPECT_EQ(least, largest);
}

// Nothing is outside the solver where the passes took no time: four micro-batches take four times as long as one.
TEST(SolverCosts, AreOfEveryMicroBatchOfAStep) {
  Measured measured;
  const auto serial_seconds = [&](std::size_t micro_batches) {
    const std::string line =
        AdviceOnSolver(measured.subject.sharded(), World(), measured.settings.lp.Options(), measured.work,
                       {0, micro_batches}, 1);
    const std::string before = "serial propagation would take about ";
    const std::size_t at = line.find(before);
    return at == std::string::npos ? 0 : std::strtod(line.c_str() + at + before.size(), nullptr);
  };
  const double one = serial_seconds(1);
  EXPECT_GT(one, 1);
  EXPECT_NEAR(serial_seconds(4), 4 * one, 0.02 * 4 * one);  // to three digits
}

}  // namespace
}  // namespace plait::training
