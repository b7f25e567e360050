// Against gates that are written out as loops.
#include "parallel/moe/gate.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/seed.h"
#include "parallel/dropout/random_numbers.h"
#include "parallel/moe/testing/gate_cases.h"
#include "parallel/moe/testing/gate_loss.h"
#include "parallel/moe/testing/gate_oracle.h"
#include "parallel/plan/meta_kernels.h"

namespace plait::moe {
namespace {

using testing::AllGates;
using testing::Dual;
using testing::GateBatch;
using testing::GateCase;
using testing::LoadOf;
using testing::OracleInput;
using testing::OracleRouting;
using testing::RandomBatch;
using testing::Row;

constexpr std::uint64_t kSeed = 17;

std::vector<Row> RowsOf(const at::Tensor& x) {
  std::vector<Row> rows(x.size(0), Row(x.size(1)));
  const auto values = x.accessor<double, 2>();
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    for (std::int64_t j = 0; j < x.size(1); ++j) rows[i][j] = values[i][j];
  }
  return rows;
}

OracleInput InputOf(const GateCase& gate, const GateBatch& batch) {
  OracleInput input = {.options = gate.options, .training = gate.training};
  input.logits = RowsOf(batch.logits);
  input.noise_logits = RowsOf(batch.noise_logits);
  const at::Tensor normal = dropout::NormalNumbers(base::DeriveSeed(kSeed, "gate noise"), batch.token_indices,
                                                   gate.options.experts);
  const at::Tensor uniform =
      dropout::UniformNumbers(base::DeriveSeed(kSeed, "second expert of a gate"), batch.token_indices, 1);
  for (std::int64_t t = 0; t < normal.size(0); ++t) {
    input.normal.emplace_back(normal[t].const_data_ptr<double>(),
                              normal[t].const_data_ptr<double>() + normal.size(1));
    input.uniform.push_back(uniform[t].item<double>());
  }
  for (int e = 0; e < gate.options.experts; ++e) input.bias.push_back(batch.bias[e].item<float>());
  return input;
}

// Random factors of the weights, so that gradients of all of them count, plus tokens times the loss.
double Factor(std::int64_t t, std::int64_t e) { return std::sin(1.0 + 3.0 * t + 7.0 * e); }

Dual Objective(const OracleRouting& routing) {
  Dual sum = routing.loss * static_cast<double>(routing.weights.size());
  for (std::size_t t = 0; t < routing.weights.size(); ++t) {
    for (std::size_t e = 0; e < routing.weights[t].size(); ++e) {
      sum = sum + routing.weights[t][e] * Factor(static_cast<std::int64_t>(t), static_cast<std::int64_t>(e));
    }
  }
  return sum;
}

at::Tensor Objective(const GateOptions& options, const Routing& routing) {
  at::Tensor factors = at::zeros(routing.weights.sizes(), at::kDouble);
  for (std::int64_t t = 0; t < factors.size(0); ++t) {
    for (std::int64_t i = 0; i < factors.size(1); ++i) {
      factors[t][i] = Factor(t, routing.experts[t][i].item<std::int64_t>());
    }
  }
  at::Tensor sum = (routing.weights * factors).sum();
  const at::Tensor loss = BalanceLoss(options, routing, LoadOf(options, {routing}));
  return loss.defined() ? sum + loss : sum;
}

// Sums of at most `tokens` * `experts` terms, each of size 10 at most and made by some ten operations; the
// noise's deviations, at least 0.05 here, divide some.
double Tolerance(const at::Tensor& logits) {
  return 1000 * std::numeric_limits<double>::epsilon() * static_cast<double>(logits.numel());
}

void ExpectAsLoops(const GateCase& gate, const GateBatch& batch) {
  if (::testing::Test::HasFailure()) return;  // the first is enough to read
  OracleInput input = InputOf(gate, batch);
  const OracleRouting expected = testing::RouteByLoops(input);
  const Routing routing = Route(gate.options, batch.logits, batch.context(gate.training, kSeed));
  const double tolerance = Tolerance(batch.logits);
  for (std::int64_t t = 0; t < batch.logits.size(0); ++t) {
    for (int i = 0; i < gate.options.k; ++i) {
      const int expert = expected.experts[t][i];
      ASSERT_EQ(routing.experts[t][i].item<std::int64_t>(), expert) << gate.name << ", token " << t;
      EXPECT_NEAR(routing.weights[t][i].item<double>(), expert < 0 ? 0 : expected.weights[t][expert].value,
                  tolerance)
          << gate.name << ", token " << t;
    }
  }
  const at::Tensor objective = Objective(gate.options, routing);
  EXPECT_NEAR(objective.item<double>(), Objective(expected).value, tolerance) << gate.name;
  objective.backward();
  const auto check = [&](std::vector<Row>& parameters, const at::Tensor& gradient, const char* what) {
    for (std::size_t t = 0; t < parameters.size(); ++t) {
      for (std::size_t e = 0; e < parameters[t].size(); ++e) {
        parameters[t][e].slope = 1;
        const double slope = Objective(testing::RouteByLoops(input)).slope;
        parameters[t][e].slope = 0;
        const auto i = static_cast<std::int64_t>(t), j = static_cast<std::int64_t>(e);
        EXPECT_NEAR(gradient.defined() ? gradient[i][j].item<double>() : 0, slope, tolerance)
            << gate.name << ", gradient of " << what << " of token " << t << ", expert " << e;
      }
    }
  };
  check(input.logits, batch.logits.grad(), "logits");
  check(input.noise_logits, batch.noise_logits.grad(), "noise logits");
}

TEST(Gate, IsThatOfTheLoops) {
  for (const auto& [experts, k] : {std::pair(1, 1), {2, 2}, {5, 1}, {6, 2}, {7, 3}, {4, 4}, {9, 8}}) {
    for (const GateCase& gate : AllGates(experts, k)) {
      SCOPED_TRACE(std::to_string(experts) + " experts, k " + std::to_string(k));
      ExpectAsLoops(gate, RandomBatch(6, experts));
    }
  }
}

TEST(Gate, GradientsAreFiniteDifferences) {
  constexpr int kExperts = 6;
  constexpr double kStep = 1e-5;
  for (const GateCase& gate : AllGates(kExperts, 2)) {
    GateBatch batch = RandomBatch(5, kExperts);
    const auto objective = [&] {
      return Objective(gate.options, Route(gate.options, batch.logits, batch.context(gate.training)));
    };
    objective().backward();
    for (const at::Tensor& parameter : {batch.logits, batch.noise_logits}) {
      if (!parameter.grad().defined()) continue;
      const at::Tensor values = parameter.detach();
      for (std::int64_t i = 0; i < values.numel(); ++i) {
        const at::Tensor value = values.flatten()[i], kept = value.clone();
        value.fill_(kept + kStep);
        const double above = objective().item<double>();
        value.fill_(kept - kStep);
        const double below = objective().item<double>();
        value.fill_(kept);
        // Third derivatives up to 1000 where noise is small; rounding is eps / step times a sum of 30.
        EXPECT_NEAR(parameter.grad().flatten()[i].item<double>(), (above - below) / (2 * kStep), 1e-6)
            << gate.name << ", element " << i;
      }
    }
  }
}

// Values of size 1 after some ten roundings; the noise's deviations, at least 0.05 here, divide some.
TEST(Gate, IsTheSameInFloat32) {
  for (const GateCase& gate : AllGates(7, 3)) {
    const GateBatch batch = RandomBatch(6, 7);
    GateBatch single = batch;
    single.logits = batch.logits.detach().to(at::kFloat).requires_grad_(true);
    single.noise_logits = batch.noise_logits.detach().to(at::kFloat).requires_grad_(true);
    const auto run = [&](const GateBatch& of) {
      const Routing routing = Route(gate.options, of.logits, of.context(gate.training));
      const at::Tensor loss = BalanceLoss(gate.options, routing, LoadOf(gate.options, {routing}));
      (routing.weights.square().sum() + loss).backward();
      EXPECT_EQ(routing.weights.scalar_type(), of.logits.scalar_type()) << gate.name;
      EXPECT_EQ(loss.scalar_type(), of.logits.scalar_type()) << gate.name;
      return std::vector<at::Tensor>{routing.experts, routing.weights.detach(), loss.detach(),
                                     of.logits.grad()};
    };
    const std::vector<at::Tensor> expected = run(batch), result = run(single);
    EXPECT_TRUE(result[0].equal(expected[0])) << gate.name;
    for (const int i : {1, 2, 3}) {
      EXPECT_TRUE(result[i].to(at::kDouble).allclose(expected[i], 2e-5, 2e-5)) << gate.name << ", " << i;
    }
  }
}

TEST(Gate, EqualLogitsGoToTheLowerExpert) {
  for (const auto& [experts, k] : {std::pair(2, 1), {8, 2}, {8, 5}, {16, 8}}) {
    for (const GateCase& gate : AllGates(experts, k)) {
      if (gate.training && gate.options.kind == GateKind::kNoisyTopK) continue;
      GateBatch batch = RandomBatch(8, experts);
      batch.logits = batch.logits.detach().round().requires_grad_(true);  // some five values
      batch.bias = at::zeros({experts}, at::kFloat);
      ExpectAsLoops(gate, batch);
    }
  }
}

TEST(Gate, LogitsFarApartHaveFiniteWeightsAndGradients) {
  const at::Tensor far = at::zeros({2, 4}, at::kFloat);
  far[0][1] = -200;
  far[0].narrow(0, 2, 2).fill_(-1000);
  far[1].fill_(-1000);
  for (const GateCase& gate : AllGates(4, 2)) {
    GateBatch batch = RandomBatch(2, 4, at::kFloat);
    batch.logits = far.clone().requires_grad_(true);
    batch.noise_logits = (far - 1000).requires_grad_(true);  // no noise
    batch.bias = at::zeros({4}, at::kFloat);
    const Routing routing = Route(gate.options, batch.logits, batch.context(gate.training));
    if (gate.options.normalizes && gate.options.kind == GateKind::kBias) {
      EXPECT_NEAR(routing.weights.sum().item<double>(), 2, 1e-6) << gate.name;
    }
    const at::Tensor loss = BalanceLoss(gate.options, routing, LoadOf(gate.options, {routing}));
    (routing.weights.select(1, 0).sum() + loss).backward();
    EXPECT_TRUE(batch.logits.grad().isfinite().all().item<bool>()) << gate.name << batch.logits.grad();
    if (batch.noise_logits.grad().defined()) {
      EXPECT_TRUE(batch.noise_logits.grad().isfinite().all().item<bool>()) << gate.name;
    }
  }
}

TEST(Gate, NoTokensAtAll) {
  for (const GateCase& gate : AllGates(4, 2)) {
    const GateBatch batch = RandomBatch(0, 4);
    const Routing routing = Route(gate.options, batch.logits, batch.context(gate.training));
    EXPECT_EQ(routing.experts.sizes(), (std::vector<std::int64_t>{0, gate.options.k})) << gate.name;
    EXPECT_EQ(routing.weights.sizes(), (std::vector<std::int64_t>{0, gate.options.k})) << gate.name;
    const at::Tensor loss = BalanceLoss(gate.options, routing, LoadOf(gate.options, {routing}));
    EXPECT_EQ(loss.item<double>(), 0) << gate.name;
    (routing.weights.sum() + loss).backward();
    EXPECT_EQ(batch.logits.grad().numel(), 0) << gate.name;
  }
}

// As memory plans run it.
TEST(Gate, MetaTensorsHaveShapes) {
  parallel::RegisterMetaKernels();
  for (const GateCase& gate : AllGates(6, 2)) {
    GateBatch batch = RandomBatch(5, 6, at::kFloat);
    for (at::Tensor* x : {&batch.logits, &batch.noise_logits})
      *x = x->detach().to(at::kMeta).requires_grad_(true);
    const Routing routing = Route(gate.options, batch.logits, batch.context(gate.training));
    EXPECT_EQ(routing.experts.sizes(), (std::vector<std::int64_t>{5, gate.options.k})) << gate.name;
    EXPECT_EQ(routing.weights.sizes(), routing.experts.sizes()) << gate.name;
    GlobalLoad load = {at::zeros({6}, at::kLong), 5, LossStatistics(routing)};
    if (gate.options.kind == GateKind::kGShard) load.statistics = at::zeros({6}, at::kDouble);
    const at::Tensor loss = BalanceLoss(gate.options, routing, load);
    (routing.weights.sum() + loss).backward();
    EXPECT_EQ(batch.logits.grad().sizes(), batch.logits.sizes()) << gate.name;
  }
}

}  // namespace
}  // namespace plait::moe
