#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "parallel/moe/gate.h"
#include "parallel/moe/testing/gate_cases.h"
#include "parallel/moe/testing/gate_loss.h"

namespace plait::moe {
namespace {

using testing::CountRows;
using testing::GateBatch;
using testing::RandomBatch;

std::string Error(const GateOptions& options) {
  const absl::Status status = Validate(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(GateOptions, BadOnesSayWhatWasExpected) {
  EXPECT_EQ(Error({}), "gate top-k: 0 experts; expected at least 1");
  EXPECT_EQ(Error({.experts = 4, .k = 5}), "gate top-k: k is 5; expected 1 to 4, the number of experts");
  EXPECT_EQ(Error({.kind = GateKind::kBias, .experts = 4, .k = 0}),
            "gate bias: k is 0; expected 1 to 4, the number of experts");
  EXPECT_EQ(Error({.kind = GateKind::kSwitch, .experts = 4, .k = 2}),
            "gate switch: k is 2; expected 1 (gate top-k routes to more)");
  EXPECT_EQ(Error({.kind = GateKind::kGShard, .experts = 4, .k = 1}),
            "gate gshard: k is 1; expected 2 (gate top-k routes to others)");
  EXPECT_EQ(Error({.kind = GateKind::kGShard, .experts = 1, .k = 2}),
            "gate gshard: k is 2; expected 1 to 1, the number of experts");
  EXPECT_EQ(Error({.experts = 4, .balance_weight = -0.5}),
            "gate top-k: the balance loss's weight is -0.5; expected a finite number that is not negative");
  EXPECT_EQ(Error({.experts = 4, .z_weight = std::nan("")}),
            "gate top-k: the z loss's weight is nan; expected a finite number that is not negative");
  EXPECT_EQ(Error({.kind = GateKind::kBias, .experts = 4, .bias_rate = -1}),
            "gate bias: the bias's rate is -1; expected a finite number that is not negative");
  EXPECT_EQ(Error({.experts = 4, .capacity_factor = std::numeric_limits<double>::infinity()}),
            "gate top-k: the capacity factor is inf; expected a finite number that is not negative");
  EXPECT_EQ(Error({.kind = GateKind::kSwitch, .experts = 4, .k = 1, .jitter = 1}),
            "gate switch: jitter is 1; expected at least 0 and less than 1");
  EXPECT_EQ(Error({.experts = 4, .jitter = 0.01}), "gate top-k: jitter is 0.01; only gate switch has it");
  EXPECT_EQ(Error({.experts = 4, .sigmoid = true}), "gate top-k: sigmoid scores; only gate bias has them");
}

TEST(GateOptions, GoodOnesAreGood) {
  for (const testing::GateCase& gate : testing::AllGates(4, 2)) EXPECT_TRUE(Validate(gate.options).ok());
  EXPECT_TRUE(Validate({.experts = 4, .k = 4}).ok());
  EXPECT_TRUE(Validate({.experts = 1, .k = 1}).ok());
}

TEST(GateOptions, NamesAreRead) {
  for (const GateKind kind :
       {GateKind::kTopK, GateKind::kNoisyTopK, GateKind::kSwitch, GateKind::kGShard, GateKind::kBias}) {
    const absl::StatusOr<GateKind> read = ParseGateKind(Name(kind));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, kind);
  }
  EXPECT_EQ(ParseGateKind("topk").status().message(),
            "gate \"topk\"; expected one of top-k, noisy-top-k, switch, gshard, bias");
}

TEST(GateBias, SelectsOnly) {
  for (const bool sigmoid : {false, true}) {
    const GateOptions options = {
        .kind = GateKind::kBias, .experts = 5, .k = 2, .normalizes = false, .sigmoid = sigmoid};
    const GateBatch batch = RandomBatch(6, 5);
    GateContext context = {.bias = at::tensor({0.0f, 9.0f, 0.0f, 7.0f, -3.0f})};
    const Routing routing = Route(options, batch.logits, context);
    EXPECT_TRUE(routing.experts.equal(at::tensor({1, 3}, at::kLong).expand({6, 2})));
    context.bias = at::zeros({5}, at::kFloat);
    const at::Tensor scores = Route(options, batch.logits, context).probabilities.detach();
    EXPECT_TRUE(routing.weights.equal(scores.index_select(1, at::tensor({1, 3}, at::kLong))));
  }
}

TEST(GateBias, IsFinite) {
  const GateOptions options = {.kind = GateKind::kBias, .experts = 2, .k = 1};
  const GateContext context = {.bias = at::tensor({0.0f, std::nanf("")})};
  EXPECT_DEATH(Route(options, RandomBatch(3, 2).logits, context), "gate bias: a bias is not finite");
}

TEST(GateBias, MovesTowardsTheMean) {
  const GateOptions options = {.kind = GateKind::kBias, .experts = 4, .k = 2, .bias_rate = 0.25};
  at::Tensor bias = at::tensor({0.0f, 1.0f, 2.0f, 3.0f});
  MoveBias(options, at::tensor({10, 0, 5, 5}, at::kLong), bias);  // mean 5
  EXPECT_TRUE(bias.equal(at::tensor({-0.25f, 1.25f, 2.0f, 3.0f}))) << bias;
  MoveBias(options, at::tensor({1, 0, 0, 0}, at::kLong), bias);  // mean 1/4
  EXPECT_TRUE(bias.equal(at::tensor({-0.5f, 1.5f, 2.25f, 3.25f}))) << bias;
}

// Rows of expert 0 balance what the bias adds to it: with many steps all experts have rows.
TEST(GateBias, BalancesWithoutALoss) {
  const GateOptions options = {
      .kind = GateKind::kBias, .experts = 4, .k = 1, .sigmoid = true, .bias_rate = 0.01};
  const GateBatch batch = RandomBatch(400, 4);
  const at::Tensor logits = batch.logits.detach() + at::tensor({3.0, 0.0, 0.0, -2.0}, at::kDouble);
  at::Tensor bias = at::zeros({4}, at::kFloat);
  const auto rows = [&] { return CountRows(Route(options, logits, {.bias = bias}).experts, 4); };
  EXPECT_GT(rows()[0].item<std::int64_t>(), 300);
  for (int step = 0; step < 200; ++step) MoveBias(options, rows(), bias);
  EXPECT_LT(rows().max().item<std::int64_t>(), 130) << rows();
  EXPECT_FALSE(BalanceLoss(options, Route(options, logits, {.bias = bias}), {}).defined());
}

TEST(GateCapacity, IsAShareOfTheRows) {
  const auto capacity = [](double factor, std::int64_t tokens, int experts = 8, int k = 2) {
    return Capacity({.experts = experts, .k = k, .capacity_factor = factor}, tokens);
  };
  EXPECT_EQ(capacity(1, 64), 16);
  EXPECT_EQ(capacity(1.25, 64), 20);
  EXPECT_EQ(capacity(1, 65), 17);     // 16.25
  EXPECT_EQ(capacity(1.1, 280), 77);  // 70 * 1.1 is more than 77 in binary
  EXPECT_EQ(capacity(0, 64), 64);     // no limit
  EXPECT_EQ(capacity(100, 64), 64);
  EXPECT_EQ(capacity(1e-9, 64), 1);
  EXPECT_EQ(capacity(1, 0), 1);
}

TEST(GateCapacity, KeepsTheFirstRowsOfEachExpert) {
  Routing routing;
  routing.experts = at::tensor({0, 1, 1, 0, 0, 2, -1, -1, 0, 1, 1, 2}, at::kLong).view({6, 2});
  routing.logits = at::zeros({6, 3}, at::kDouble);
  const at::Tensor weights = at::full({6, 2}, 0.5, at::kDouble).requires_grad_(true);
  at::Tensor mark = at::ones({6, 2}, at::kDouble);
  mark[3] = std::nan("");  // a row that is not finite
  routing.weights = weights * mark;
  DropOverCapacity(routing, at::tensor({1, 0, 5}, at::kLong), /*capacity=*/3);
  // Expert 0 has room for 2, expert 1 for 3, expert 2 for none.
  EXPECT_TRUE(
      routing.experts.equal(at::tensor({0, 1, 1, 0, -1, -1, -1, -1, -1, 1, -1, -1}, at::kLong).view({6, 2})))
      << routing.experts;
  const at::Tensor kept = routing.experts.ge(0).to(at::kDouble);
  EXPECT_TRUE(routing.weights[3].isnan().all().item<bool>());
  const at::Tensor finite = at::tensor({0, 1, 2, 4, 5}, at::kLong);
  EXPECT_TRUE(routing.weights.index_select(0, finite).equal((kept * 0.5).index_select(0, finite)));
  routing.weights.index_select(0, finite).sum().backward();
  EXPECT_TRUE(weights.grad().index_select(0, finite).equal(kept.index_select(0, finite)));
}

TEST(GateCapacity, PartsDropTheRowsOfTheWhole) {
  const GateOptions options = {.experts = 5, .k = 2, .capacity_factor = 0.8};
  const GateBatch batch = RandomBatch(40, 5);
  Routing whole = Route(options, batch.logits, {});
  const std::int64_t capacity = Capacity(options, 40);
  DropOverCapacity(whole, at::zeros({5}, at::kLong), capacity);
  EXPECT_TRUE(whole.experts.lt(0).any().item<bool>());
  EXPECT_EQ(CountRows(whole.experts, 5).max().item<std::int64_t>(), capacity);
  at::Tensor before = at::zeros({5}, at::kLong);
  std::vector<at::Tensor> experts, weights;
  for (std::int64_t first = 0; const std::int64_t count : {13, 0, 1, 26}) {
    Routing part = Route(options, batch.logits.narrow(0, first, count), {});
    const at::Tensor rows = CountRows(part.experts, 5);
    DropOverCapacity(part, before, capacity);
    before = before + rows;
    experts.push_back(part.experts);
    weights.push_back(part.weights);
    first += count;
  }
  EXPECT_TRUE(at::cat(experts).equal(whole.experts));
  EXPECT_TRUE(at::cat(weights).equal(whole.weights));
}

// Statistics and losses are those of the router's choice, before or after rows are dropped.
TEST(GateCapacity, LeavesLossesAsTheyAre) {
  for (const testing::GateCase& gate : testing::AllGates(5, 2)) {
    const GateBatch batch = RandomBatch(30, 5);
    Routing routing = Route(gate.options, batch.logits, batch.context(gate.training));
    const GlobalLoad load = testing::LoadOf(gate.options, {routing});
    const at::Tensor before = BalanceLoss(gate.options, routing, load);
    DropOverCapacity(routing, at::zeros({5}, at::kLong), /*capacity=*/2);
    EXPECT_TRUE(BalanceLoss(gate.options, routing, load).equal(before)) << gate.name;
    if (load.statistics.defined()) {
      EXPECT_TRUE(LossStatistics(routing).equal(load.statistics)) << gate.name;
    }
  }
}

}  // namespace
}  // namespace plait::moe
