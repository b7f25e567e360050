// Every strategy on every mesh against the whole batch on one rank, with AdamW and clipping written out, in
// float64.
#include "parallel/sharding/data_parallel.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "comm/device_mesh.h"
#include "comm/stats.h"
#include "comm/testing/world.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;

constexpr int kSteps = 6;
constexpr double kLr = 0.02, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1, kClip = 0.5;

struct Setting {
  Strategy strategy;
  int replicas, shards;
  bool reshard = true;
  bool prefetch = true;
  int passes = 1;  // micro-batches per step
  bool reduce_each = false;
};

std::string TextOf(const Setting& s) {
  return std::string(Name(s.strategy)) + " " + std::to_string(s.replicas) + "x" + std::to_string(s.shards) +
         (s.reshard ? "" : " keeps") + (s.prefetch ? "" : " no prefetch") + " passes " +
         std::to_string(s.passes) + (s.reduce_each ? " each" : "");
}

comm::DeviceMesh MeshOf(const Setting& s) {
  return *comm::DeviceMesh::Create(World(), {{"dp_replicate", s.replicas}, {"dp_shard", s.shards}});
}

// All strategies on all meshes that the world has room for.
std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (int shards = 1; shards <= World().size(); ++shards) {
    if (World().size() % shards != 0) continue;
    const int replicas = World().size() / shards;
    for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
      if (strategy == Strategy::kDdp && shards > 1) continue;
      settings.push_back({strategy, replicas, shards});
      settings.push_back({strategy, replicas, shards, false, false});
      settings.push_back({strategy, replicas, shards, true, true, 3, false});
      settings.push_back({strategy, replicas, shards, true, false, 2, true});
    }
  }
  return settings;
}

// Rank r has r + 1 samples in each pass: ranks have unequal parts of the batch.
std::int64_t SamplesOf(int rank) { return rank + 1; }
std::int64_t SamplesOfAll() { return World().size() * (World().size() + 1) / 2; }

at::Tensor Inputs(int rank, int step, int pass) {
  return TestNumbers({SamplesOf(rank), TestingModel::kWidth}, 77 + 1000 * rank + 31 * step + 7 * pass);
}
at::Tensor Targets(int rank, int step, int pass) {
  return TestNumbers({SamplesOf(rank), TestingModel::kWidth}, 99 + 1000 * rank + 31 * step + 7 * pass);
}

// The loss of one rank's samples; the parts of all ranks and passes add up to the mean.
at::Tensor Part(const TestingModel& model, int rank, int step, int pass, int passes) {
  return model.Loss(Inputs(rank, step, pass), Targets(rank, step, pass)) /
         static_cast<double>(SamplesOfAll() * passes);
}

std::vector<at::Tensor> ParametersOf(const TestingModel& model) {
  std::vector<at::Tensor> all;
  for (const models::ParameterUnit& unit : model.units) {
    for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor);
  }
  return all;
}

// Algorithm 2 of arXiv:1711.05101 as PyTorch states it, and clip_grad_norm_.
class SerialAdamW {
 public:
  explicit SerialAdamW(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const at::Tensor& p : parameters_) {
      first_.push_back(at::zeros_like(p.detach()));
      second_.push_back(at::zeros_like(p.detach()));
    }
  }
  double Step() {
    const at::NoGradGuard no_grad;
    double squares = 0;
    for (const at::Tensor& p : parameters_) squares += (p.grad() * p.grad()).sum().item<double>();
    const double scale = std::min(1.0, kClip / (std::sqrt(squares) + 1e-6));
    ++steps_;
    const double correction1 = 1 - std::pow(kBeta1, steps_), correction2 = 1 - std::pow(kBeta2, steps_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor& p = parameters_[i];
      const at::Tensor g = p.grad() * scale;
      if (p.dim() >= 2) p.mul_(1 - kLr * kDecay);
      first_[i] = first_[i] * kBeta1 + g * (1 - kBeta1);
      second_[i] = second_[i] * kBeta2 + g * g * (1 - kBeta2);
      p.sub_(first_[i] / correction1 / ((second_[i] / correction2).sqrt() + kEpsilon) * kLr);
      p.mutable_grad().reset();
    }
    return std::sqrt(squares);
  }

 private:
  std::vector<at::Tensor> parameters_, first_, second_;
  int steps_ = 0;
};

struct Trajectory {
  std::vector<double> losses, norms;
  std::vector<at::Tensor> parameters;
};

Trajectory SerialRun(int passes) {
  TestingModel model(at::kDouble);
  SerialAdamW optimizer(ParametersOf(model));
  Trajectory run;
  for (int step = 0; step < kSteps; ++step) {
    double loss = 0;
    for (int pass = 0; pass < passes; ++pass) {
      for (int rank = 0; rank < World().size(); ++rank) {
        const at::Tensor part = Part(model, rank, step, pass, passes);
        part.backward();
        loss += part.item<double>();
      }
    }
    run.losses.push_back(loss);
    run.norms.push_back(optimizer.Step());
  }
  for (const at::Tensor& p : ParametersOf(model)) run.parameters.push_back(p.detach().clone());
  return run;
}

std::unique_ptr<DataParallel> Engine(TestingModel& model, const Setting& s,
                                     DataParallelOptions options = {}) {
  options.strategy = s.strategy;
  options.reshard_after_forward = s.reshard;
  options.prefetch = s.prefetch;
  options.part_bytes = TestingModel::kWidth * TestingModel::kWidth * 8;  // the embedding, not the scale
  const auto initialize = [&model](std::size_t unit) { model.Initialize(unit); };
  auto dp = *DataParallel::Create(MeshOf(s), model.units, options, initialize);
  model.run = [engine = dp.get()](std::size_t block, const models::BlockForward& forward,
                                  const models::BlockState& x) { return engine->Run(block, forward, x); };
  return dp;
}

ShardedOptimizerOptions AdamW() {
  return {.lr = kLr, .beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon, .weight_decay = kDecay};
}

double Backward(DataParallel& dp, const TestingModel& model, const Setting& s, int step, int pass) {
  const at::Tensor part = dp.Forward([&] { return Part(model, World().rank(), step, pass, s.passes); });
  dp.Backward(part, {.last = pass + 1 == s.passes, .reduce_every_micro_batch = s.reduce_each});
  return part.item<double>();
}

std::vector<at::Tensor> WholeParameters(DataParallel& dp) {
  std::vector<at::Tensor> all;
  dp.VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor.detach().clone());
  });
  return all;
}

// Of the same samples, without gradients.
void ExpectOneLossEverywhere(DataParallel& dp, const TestingModel& model) {
  const at::NoGradGuard no_grad;
  const at::Tensor value = dp.Forward([&] { return model.Loss(Inputs(0, 9, 0), Targets(0, 9, 0)); });
  double lowest = value.item<double>();
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&lowest, 1)), comm::ReduceOp::kMin);
  EXPECT_EQ(value.item<double>(), lowest) << "ranks have different parameters";
}

Trajectory ParallelRun(const Setting& s, at::Device device = at::kCPU, bool evaluates = false) {
  TestingModel model(at::kDouble, device);
  const std::unique_ptr<DataParallel> dp = Engine(model, s);
  ShardedOptimizer optimizer(*dp, AdamW());
  Trajectory run;
  for (int step = 0; step < kSteps; ++step) {
    double loss = 0;
    for (int pass = 0; pass < s.passes; ++pass) loss += Backward(*dp, model, s, step, pass);
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    run.losses.push_back(loss);
    run.norms.push_back(optimizer.Step({.clip_norm = kClip}).gradient_norm);
    if (evaluates) ExpectOneLossEverywhere(*dp, model);
  }
  run.parameters = WholeParameters(*dp);
  return run;
}

// Rounding of sums of some 100 terms through six steps of AdamW, whose division by the root of the second
// moment amplifies a relative error of a gradient at most kLr-fold: far below 1e-12, the bound that the
// parity matrix has.
constexpr double kTolerance = 1e-12;

void ExpectSame(const Trajectory& mine, const Trajectory& serial) {
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(mine.losses[step] / serial.losses[step], 1, kTolerance) << "loss of step " << step;
    EXPECT_NEAR(mine.norms[step] / serial.norms[step], 1, kTolerance) << "norm of step " << step;
  }
  ASSERT_EQ(mine.parameters.size(), serial.parameters.size());
  for (std::size_t i = 0; i < serial.parameters.size(); ++i) {
    const double size = serial.parameters[i].abs().max().item<double>();
    const double difference = (mine.parameters[i] - serial.parameters[i]).abs().max().item<double>();
    EXPECT_LE(difference / size, kTolerance) << "parameter " << i;
  }
}

TEST(DataParallelTest, EveryStrategyIsTheWholeBatchOnOneRank) {
  const std::vector<Trajectory> serial = {SerialRun(1), SerialRun(2), SerialRun(3)};
  EXPECT_GT(serial[0].norms[0], kClip) << "clipping is not tested";
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    ExpectSame(ParallelRun(s), serial[s.passes - 1]);
  }
}

TEST(DataParallelTest, TheSameRunTwiceGivesTheSameBits) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    const Trajectory first = ParallelRun(s), second = ParallelRun(s);
    EXPECT_EQ(first.losses, second.losses);
    for (std::size_t i = 0; i < first.parameters.size(); ++i) {
      EXPECT_TRUE(first.parameters[i].equal(second.parameters[i])) << "parameter " << i;
    }
  }
}

TEST(DataParallelTest, ParametersFromTheMetaDeviceAreTheSame) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    const Trajectory real = ParallelRun(s), meta = ParallelRun(s, at::kMeta);
    EXPECT_EQ(real.losses, meta.losses);
  }
}

bool IsBlock(const Shard& shard, int block = -1) {
  const std::string prefix = block < 0 ? "block." : "block." + std::to_string(block) + ".";
  const std::vector<FlatParameter>& parameters = shard.layout->parameters();
  return !parameters.empty() && parameters[0].name.rfind(prefix, 0) == 0;
}

// Bytes that a rank sends in a step, by the formulas in data_parallel.h.
std::int64_t ExpectedBytes(const Setting& s, const std::vector<Shard>& shards) {
  std::int64_t scatter = 0, gather = 0, replicas = 0;
  for (std::size_t u = 0; u < shards.size(); ++u) {
    const std::int64_t share = shards[u].layout->shard_count() * 8;
    const bool gathered_twice = ShardsParameters(s.strategy) && s.reshard && IsBlock(shards[u]) &&
                                !IsBlock(shards[u], TestingModel::kBlocks - 1);
    scatter += share * (s.shards - 1) * (s.reduce_each && ShardsGradients(s.strategy) ? s.passes : 1);
    gather +=
        share * (s.shards - 1) * (ShardsParameters(s.strategy) ? s.passes : 1) * (gathered_twice ? 2 : 1);
    replicas += s.replicas > 1 ? 2 * share * (s.replicas - 1) / s.replicas : 0;
  }
  return scatter + gather + replicas;
}

std::int64_t SentBytes() {
  std::int64_t bytes = 0;
  for (const auto& [axis, operations] : World().stats()) {
    if (axis != "dp_replicate" && axis != "dp_shard") continue;
    for (const comm::OperationStats& operation : operations) bytes += operation.wire_bytes;
  }
  return bytes;
}

TEST(DataParallelTest, BytesSentAreThoseOfTheFormula) {
  for (Setting s : Settings()) {
    if (ShardsParameters(s.strategy) && !s.reshard) continue;  // gathers once per step: below
    SCOPED_TRACE(TextOf(s));
    TestingModel model(at::kDouble);
    const std::unique_ptr<DataParallel> dp = Engine(model, s);
    ShardedOptimizer optimizer(*dp, AdamW());
    for (int pass = 0; pass < s.passes; ++pass) Backward(*dp, model, s, 0, pass);  // learns an order
    dp->AllGatherParameters();
    dp->WaitForParameters();
    const std::int64_t before = SentBytes();
    for (int pass = 0; pass < s.passes; ++pass) Backward(*dp, model, s, 0, pass);
    optimizer.Step();  // no norm: it would be eight bytes more
    EXPECT_EQ(SentBytes() - before, ExpectedBytes(s, dp->shards()));
    dp->WaitForParameters();
  }
}

TEST(DataParallelTest, BlocksThatStayAreGatheredOnce) {
  Setting s{Strategy::kFsdp, 1, World().size(), /*reshard=*/false};
  TestingModel model(at::kDouble);
  const std::unique_ptr<DataParallel> dp = Engine(model, s);
  Backward(*dp, model, s, 0, 0);
  dp->AllGatherParameters();
  const std::int64_t before = SentBytes();
  Backward(*dp, model, s, 0, 0);
  std::int64_t expected = 0;
  for (const Shard& shard : dp->shards()) expected += 2 * shard.layout->shard_count() * 8 * (s.shards - 1);
  EXPECT_EQ(SentBytes() - before, expected);
}

TEST(DataParallelTest, ParametersThatOneRankDoesNotReachCountAsZero) {
  for (const Setting& s : Settings()) {
    if (s.passes > 1) continue;
    SCOPED_TRACE(TextOf(s));
    if (ShardsParameters(s.strategy) && s.shards > 1) continue;  // its ranks make the same gathers
    TestingModel serial(at::kDouble), model(at::kDouble);
    for (int rank = 0; rank < World().size(); ++rank) {
      serial.blocks_used = rank == 0 ? 1 : TestingModel::kBlocks;
      Part(serial, rank, 0, 0, 1).backward();
    }
    const std::unique_ptr<DataParallel> dp = Engine(model, s);
    model.blocks_used = World().rank() == 0 ? 1 : TestingModel::kBlocks;
    Backward(*dp, model, s, 0, 0);
    double squares = 0;
    for (const at::Tensor& p : ParametersOf(serial)) {
      if (p.grad().defined()) squares += (p.grad() * p.grad()).sum().item<double>();
    }
    EXPECT_NEAR(dp->GradientNorm() / std::sqrt(squares), 1, kTolerance);
  }
}

TEST(DataParallelTest, EvaluationBetweenStepsChangesNothing) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    EXPECT_EQ(ParallelRun(s).losses, ParallelRun(s, at::kCPU, /*evaluates=*/true).losses);
  }
}

TEST(DataParallelTest, ShardedStatesTakeTheirShareOfMemory) {
  const int n = World().size();
  const Setting s{Strategy::kFsdp, 1, n, true, false};
  TestingModel model(at::kDouble, at::kMeta);
  const std::unique_ptr<DataParallel> dp = Engine(model, s);
  Backward(*dp, model, s, 0, 0);
  std::int64_t shares = 0, roots = 0, block = 0;
  for (std::size_t u = 0; u < dp->shards().size(); ++u) {
    const std::int64_t whole = dp->shards()[u].layout->count() * 8;
    shares += dp->shards()[u].layout->shard_count() * 8;
    IsBlock(dp->shards()[u]) ? block = whole : roots += whole;
  }
  // Masters and gradients; unsharded root units and block, and their gradients.
  if (n > 1) {
    EXPECT_LE(dp->peak_bytes(), 2 * shares + 2 * roots + 2 * block);
  }
  EXPECT_GE(dp->peak_bytes(), 2 * shares);
}

// Gradients of bfloat16 activations are good to 2^-8 each; sums of rounded terms add their errors.
TEST(DataParallelTest, HalfPrecisionParametersHaveFloat32Masters) {
  for (const Setting& s : Settings()) {
    if (s.passes > 1) continue;
    SCOPED_TRACE(TextOf(s));
    TestingModel model(at::kFloat), serial(at::kFloat);
    const std::unique_ptr<DataParallel> dp = Engine(model, s, {.compute_type = at::kBFloat16});
    const at::Tensor x = Inputs(0, 0, 0), y = Targets(0, 0, 0);
    const at::Tensor loss =
        dp->Forward([&] { return model.Loss(x.to(at::kBFloat16), y.to(at::kBFloat16)) / World().size(); });
    EXPECT_EQ(loss.scalar_type(), at::kBFloat16);
    dp->Backward(loss);
    serial.Loss(x.to(at::kFloat), y.to(at::kFloat)).backward();
    double squares = 0;
    for (const at::Tensor& p : ParametersOf(serial)) squares += (p.grad() * p.grad()).sum().item<double>();
    EXPECT_NEAR(dp->GradientNorm() / std::sqrt(squares), 1, 16 * 0x1p-8);
    for (const Shard& shard : dp->shards()) {
      EXPECT_EQ(shard.master.scalar_type(), at::kFloat);
      EXPECT_EQ(shard.gradient.scalar_type(), at::kFloat);
    }
    // A step too small for bfloat16 is not lost.
    std::vector<at::Tensor> before;
    for (const Shard& shard : dp->shards()) before.push_back(shard.master.clone());
    ShardedOptimizer optimizer(*dp, {.lr = 1e-5});
    optimizer.Step();
    dp->WaitForParameters();
    double moved = 0;
    for (std::size_t u = 0; u < before.size(); ++u) {
      if (before[u].numel() == 0) continue;
      moved = std::max(moved, (dp->shards()[u].master - before[u]).abs().max().item<double>());
    }
    // With four ranks one has nothing but padding.
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&moved, 1)), comm::ReduceOp::kMax);
    EXPECT_GT(moved, 0.5e-5);
    EXPECT_LT(moved, 2e-5);
  }
}

// LibTorch's norm of so many float32 on a CPU is off by 1e-3.
TEST(DataParallelTest, NormOfManyElementsIsAccurate) {
  constexpr std::int64_t kElements = std::int64_t{1} << 22;
  const std::vector<models::ParameterUnit> units = {
      models::MakeUnit("root", {{"w", at::zeros({kElements}, at::kFloat).requires_grad_(true)}})};
  const auto dp = *DataParallel::Create(MeshOf({Strategy::kZero1, 1, World().size()}), units,
                                        {.strategy = Strategy::kZero1});
  dp->Backward(dp->Forward([&] { return (units[0].parameters[0].tensor * 0.001).sum(); }));
  EXPECT_NEAR(dp->GradientNorm() / (0.001 * 2048 * World().size()), 1, 1e-6);
}

TEST(DataParallelTest, StatesOfRankZeroAreEverybodys) {
  for (const Setting& s : Settings()) {
    if (s.passes > 1) continue;
    TestingModel model(at::kDouble), first(at::kDouble);
    {
      const at::NoGradGuard no_grad;
      for (at::Tensor& p : ParametersOf(model)) p.add_(World().rank());
    }
    const std::vector<at::Tensor> expected = ParametersOf(first);
    const auto dp = *DataParallel::Create(MeshOf(s), model.units, {.strategy = s.strategy});
    const std::vector<at::Tensor> whole = WholeParameters(*dp);
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(whole[i].equal(expected[i])) << TextOf(s);
  }
}

TEST(DataParallelTest, BadInputIsToldOnAllRanks) {
  const int n = World().size();
  TestingModel model(at::kDouble);
  if (n > 1) {
    const auto ddp = DataParallel::Create(MeshOf({Strategy::kDdp, 1, n}), model.units, {});
    EXPECT_NE(ddp.status().message().find("strategy ddp does not shard, but axis dp_shard has"),
              std::string::npos)
        << ddp.status();
    // The last rank has another model.
    const auto units = World().rank() == n - 1 ? TestingModel::MakeUnits(at::kFloat, at::kCPU) : model.units;
    const auto differ =
        DataParallel::Create(MeshOf({Strategy::kZero1, 1, n}), units, {.strategy = Strategy::kZero1});
    EXPECT_NE(differ.status().message().find("unit \"root\": bias (7) Float, root\" where rank 0 has "
                                             "\"unit \"root\": bias (7) Double, root"),
              std::string::npos)
        << differ.status();
  }
  TestingModel meta(at::kDouble, at::kMeta);
  const auto dead =
      DataParallel::Create(MeshOf({Strategy::kZero1, 1, n}), meta.units, {.strategy = Strategy::kZero1});
  EXPECT_NE(dead.status().message().find("meta device, and no initializer is given"), std::string::npos);
}

}  // namespace
}  // namespace plait::parallel
