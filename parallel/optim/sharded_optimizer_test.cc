// Fused steps on shards against the formulas in float64; moments in a file against moments in memory, bitwise.
#include "parallel/optim/sharded_optimizer.h"

#include <ATen/ops/svd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/optim/muon.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;

constexpr int kSteps = 4;
constexpr double kTolerance = 1e-13;  // a few roundings per step, four steps

struct Program {
  Program() : model(at::kDouble) {
    const auto mesh = comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"dp_shard", World().size()}});
    dp = *DataParallel::Create(*mesh, model.units, {.strategy = Strategy::kFsdp});
    model.run = [this](std::size_t block, const models::BlockForward& forward, const models::BlockState& x) {
      return dp->Run(block, forward, x);
    };
  }
  ~Program() { dp->WaitForParameters(); }

  void Backward(int step, double scale = 1) {
    dp->Backward(dp->Forward([&] {
      return model.Loss(TestNumbers({2, TestingModel::kWidth}, step),
                        TestNumbers({2, TestingModel::kWidth}, 9)) *
             (scale / World().size());
    }));
  }
  std::vector<at::Tensor> Parameters() {
    std::vector<at::Tensor> all;
    dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
      for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor.detach().clone());
    });
    return all;
  }

  TestingModel model;
  std::unique_ptr<DataParallel> dp;
};

using Rule =
    std::function<void(at::Tensor& p, at::Tensor g, at::Tensor& first, at::Tensor& second, int step)>;

// As torch.nn.utils.clip_grad_norm_; 0: does nothing.
void Clip(const std::vector<at::Tensor>& parameters, double clip_norm) {
  double squares = 0;
  for (const at::Tensor& p : parameters) squares += p.grad().square().sum().item<double>();
  ASSERT_GT(std::sqrt(squares), clip_norm);
  if (clip_norm == 0) return;
  for (const at::Tensor& p : parameters) p.grad().mul_(clip_norm / (std::sqrt(squares) + 1e-6));
}

// The reference: all samples of all ranks on this rank. `of_block_matrices`: the rule for matrices of blocks; empty:
// the same as for all other parameters.
std::vector<at::Tensor> Serial(const Rule& rule, const Rule& of_block_matrices, double clip_norm) {
  TestingModel model(at::kDouble);
  std::vector<at::Tensor> parameters, first, second;
  std::vector<const Rule*> rules;
  for (const models::ParameterUnit& unit : model.units) {
    for (const models::ParameterSpec& p : unit.parameters) {
      parameters.push_back(p.tensor);
      const bool other = of_block_matrices && unit.block >= 0 && p.tensor.dim() == 2;
      rules.push_back(other ? &of_block_matrices : &rule);
      first.push_back(at::zeros_like(p.tensor.detach()));
      second.push_back(at::zeros_like(p.tensor.detach()));
    }
  }
  for (int step = 0; step < kSteps; ++step) {
    model.Loss(TestNumbers({2, TestingModel::kWidth}, step), TestNumbers({2, TestingModel::kWidth}, 9))
        .backward();
    const at::NoGradGuard no_grad;
    Clip(parameters, clip_norm);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      (*rules[i])(parameters[i], parameters[i].grad().clone(), first[i], second[i], step + 1);
      parameters[i].mutable_grad().reset();
    }
  }
  return parameters;
}

// The loss of each step is scaled by another factor.
void ExpectSteps(const ShardedOptimizerOptions& options, const Rule& rule, const Rule& of_block_matrices = {},
                 double clip_norm = 0) {
  Program program;
  ShardedOptimizer optimizer(*program.dp, options);
  for (int step = 0; step < kSteps; ++step) {
    const double scale = std::ldexp(1, 3 * step);
    program.Backward(step, scale);
    optimizer.Step({.clip_norm = clip_norm, .loss_scale = scale});
  }
  const std::vector<at::Tensor> expected = Serial(rule, of_block_matrices, clip_norm),
                                parameters = program.Parameters();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = (parameters[i] - expected[i]).abs().max().item<double>();
    EXPECT_LE(difference, kTolerance * expected[i].abs().max().item<double>()) << "parameter " << i;
  }
}

// Weight decay of matrices only.
double DecayOf(const at::Tensor& p, double decay) { return p.dim() >= 2 ? decay : 0; }

TEST(ShardedOptimizerTest, Sgd) {
  ExpectSteps({.kind = OptimizerKind::kSgd, .lr = 1e-3, .weight_decay = 0.1},
              [](at::Tensor& p, const at::Tensor& g, at::Tensor&, at::Tensor&, int) {
                p.sub_((g + p * DecayOf(p, 0.1)) * 1e-3);
              });
}

TEST(ShardedOptimizerTest, SgdWithMomentum) {
  ExpectSteps({.kind = OptimizerKind::kSgd, .lr = 1e-3, .momentum = 0.9},
              [](at::Tensor& p, const at::Tensor& g, at::Tensor& velocity, at::Tensor&, int) {
                velocity = velocity * 0.9 + g;
                p.sub_(velocity * 1e-3);
              });
}

TEST(ShardedOptimizerTest, AdamWithCoupledDecay) {
  ExpectSteps({.kind = OptimizerKind::kAdam, .lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1},
              [](at::Tensor& p, at::Tensor g, at::Tensor& first, at::Tensor& second, int step) {
                g = g + p * DecayOf(p, 0.1);
                first = first * 0.8 + g * 0.2;
                second = second * 0.9 + g * g * 0.1;
                const at::Tensor root = (second / (1 - std::pow(0.9, step))).sqrt() + 1e-8;
                p.sub_(first / (1 - std::pow(0.8, step)) / root * 0.01);
              });
}

// The same polynomial, applied to the singular values directly.
at::Tensor BySingularValues(const at::Tensor& matrix) {
  const auto [u, values, v] = at::svd(matrix / (matrix.norm() + 1e-7));
  at::Tensor s = values;
  for (int k = 0; k < 5; ++k) s = s * 3.4445 - s.pow(3) * 4.7750 + s.pow(5) * 2.0315;
  return at::mm(u * s, v.t());
}

TEST(Muon, BringsSingularValuesNearOne) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{5, 5}, {3, 8}, {9, 4}, {1, 6}}) {
    const at::Tensor matrix = TestNumbers(shape, 3), made = NewtonSchulz(matrix);
    EXPECT_LE((made - BySingularValues(matrix)).abs().max().item<double>(), 1e-12) << matrix.sizes();
    // The polynomial's own limits for values above 0.01 or so (Jordan et al.).
    const at::Tensor values = std::get<1>(at::svd(made));
    EXPECT_GT(values.min().item<double>(), 0.5) << matrix.sizes();
    EXPECT_LT(values.max().item<double>(), 1.3) << matrix.sizes();
  }
  const at::Tensor stack = TestNumbers({2, 3, 8}, 4);
  for (const std::int64_t k : {0, 1})
    EXPECT_TRUE(NewtonSchulz(stack)[k].equal(NewtonSchulz(stack[k].contiguous())));
  EXPECT_EQ(NewtonSchulz(at::zeros({2, 3})).abs().max().item<double>(), 0);
  EXPECT_DOUBLE_EQ(MuonScale(16, 25), 1.0);
}

// With shards that split matrices anywhere, updates are still those of whole matrices.
void ExpectMuon(double clip_norm) {
  ExpectSteps(
      {.kind = OptimizerKind::kMuon,
       .lr = 0.01,
       .beta1 = 0.8,
       .beta2 = 0.9,
       .momentum = 0.95,
       .weight_decay = 0.1},
      [](at::Tensor& p, at::Tensor g, at::Tensor& first, at::Tensor& second, int step) {
        p.mul_(1 - 0.01 * DecayOf(p, 0.1));
        first = first * 0.8 + g * 0.2;
        second = second * 0.9 + g * g * 0.1;
        const at::Tensor root = (second / (1 - std::pow(0.9, step))).sqrt() + 1e-8;
        p.sub_(first / (1 - std::pow(0.8, step)) / root * 0.01);
      },
      [](at::Tensor& p, at::Tensor g, at::Tensor& momentum, at::Tensor&, int) {
        momentum = momentum * 0.95 + g * 0.05;
        p.mul_(1 - 0.01 * 0.1);
        p.sub_(BySingularValues(g * 0.05 + momentum * 0.95) * (0.01 * 0.2 * std::sqrt(7.0)));
      },
      clip_norm);
}

TEST(ShardedOptimizerTest, MuonForMatricesOfBlocksAndAdamWForTheRest) { ExpectMuon(0); }

// The direction of a single step is the same for any length of the gradient: that of a mean over steps is not.
TEST(ShardedOptimizerTest, MuonOfClippedGradients) { ExpectMuon(1e-3); }

// Experts' weights are one tensor, (experts, rows, columns).
TEST(ShardedOptimizerTest, MuonForEachMatrixOfAStack) {
  constexpr double kLr = 0.01, kMomentum = 0.95;
  const at::Tensor initial = TestNumbers({3, 4, 5}, 1), factor = TestNumbers({3, 4, 5}, 2);
  const at::Tensor weight = initial.clone().requires_grad_(true);
  const auto mesh = comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"dp_shard", World().size()}});
  const auto dp = *DataParallel::Create(*mesh, {models::MakeUnit("block.0", {{"experts", weight}}, 0)},
                                        {.strategy = Strategy::kFsdp});
  ShardedOptimizer optimizer(
      *dp, {.kind = OptimizerKind::kMuon, .lr = kLr, .momentum = kMomentum, .weight_decay = 0});
  dp->Backward(dp->Forward([&] {
    const models::BlockForward loss = [&](const models::BlockState& in) {
      return models::BlockState{in.hidden * (weight * factor).sum() / World().size()};
    };
    return dp->Run(0, loss, {TestNumbers({1}, 3).requires_grad_(true)}).hidden.sum();
  }));
  const at::Tensor gradient = factor * TestNumbers({1}, 3);
  optimizer.Step();
  dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
    const at::Tensor stepped = unit.parameters[0].tensor.detach();
    for (std::int64_t expert = 0; expert < 3; ++expert) {
      // Nesterov's direction of a first step is a multiple of the gradient.
      const at::Tensor direction = BySingularValues(gradient[expert] * (1 - kMomentum * kMomentum));
      const at::Tensor expected = initial[expert] - direction * (kLr * 0.2 * std::sqrt(5.0));
      EXPECT_LE((stepped[expert] - expected).abs().max().item<double>(), 1e-12) << expert;
    }
  });
  dp->WaitForParameters();
}

TEST(ShardedOptimizerTest, MomentsInAFileGiveTheSameBits) {
  for (const auto kind : {OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
    const ShardedOptimizerOptions options = {.kind = kind, .lr = 0.01, .momentum = 0.9, .weight_decay = 0.1};
    Program memory, file;
    ShardedOptimizer in_memory(*memory.dp, options);
    const auto in_file = *ShardedOptimizer::Create(
        *file.dp, options, {.target = OffloadTarget::kFile, .folder = ::testing::TempDir()});
    for (int step = 0; step < kSteps; ++step) {
      memory.Backward(step);
      file.Backward(step);
      in_memory.Step({.clip_norm = 0.1});
      EXPECT_TRUE(in_file->Step({.clip_norm = 0.1}).status.ok());
    }
    const std::vector<at::Tensor> a = memory.Parameters(), b = file.Parameters();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << "parameter " << i;
  }
}

TEST(ShardedOptimizerTest, NoPlaceForMomentsIsToldOnAllRanks) {
  Program program;
  const auto muon =
      ShardedOptimizer::Create(*program.dp, {.kind = OptimizerKind::kMuon},
                               {.target = OffloadTarget::kFile, .folder = ::testing::TempDir()});
  EXPECT_EQ(muon.status().code(), absl::StatusCode::kUnimplemented) << muon.status();
  const auto optimizer = ShardedOptimizer::Create(
      *program.dp, {}, {.target = OffloadTarget::kFile, .folder = "/no/such/folder"});
  EXPECT_EQ(optimizer.status().code(), absl::StatusCode::kNotFound) << optimizer.status();
}

TEST(ShardedOptimizerTest, AScaledLossMakesTheSameStep) {
  Program plain, scaled;
  ShardedOptimizer a(*plain.dp, {}), b(*scaled.dp, {});
  plain.Backward(0);
  scaled.Backward(0, /*scale=*/1024);
  const StepResult expected = a.Step({.clip_norm = 0.25}),
                   result = b.Step({.clip_norm = 0.25, .loss_scale = 1024});
  EXPECT_DOUBLE_EQ(result.gradient_norm, expected.gradient_norm);
  EXPECT_FALSE(result.skipped);
  const std::vector<at::Tensor> x = plain.Parameters(), y = scaled.Parameters();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(x[i].equal(y[i])) << "parameter " << i;
}

// An overflow on one rank skips the step on all ranks, whatever the options.
TEST(ShardedOptimizerTest, AnOverflowChangesNothing) {
  for (const StepOptions& options :
       {StepOptions{.loss_scale = 2}, StepOptions{}, StepOptions{.clip_norm = 1}}) {
    Program program;
    ShardedOptimizer optimizer(*program.dp, {});
    const std::vector<at::Tensor> before = program.Parameters();
    program.Backward(0, World().rank() == 0 ? std::numeric_limits<double>::infinity() : 2);
    EXPECT_TRUE(optimizer.Step(options).skipped);
    EXPECT_EQ(optimizer.steps(), 0);
    const std::vector<at::Tensor> after = program.Parameters();
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(after[i].equal(before[i])) << "parameter " << i;
    }
    program.Backward(0, 2);
    EXPECT_FALSE(optimizer.Step(options).skipped);
  }
}

}  // namespace
}  // namespace plait::parallel
