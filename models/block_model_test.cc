// RunBlocks, UnitsByPrefix, Materialize and ModuleModel.
#include "models/block_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <vector>

#include "models/module_model.h"

namespace plait::models {
namespace {

TEST(Materialize, GivesAMetaTensorMemoryAndKeepsItALeaf) {
  const at::Tensor parameter = at::empty({2, 3}, at::TensorOptions(at::kMeta)).requires_grad_(true);
  const at::Tensor handle = parameter;
  const at::Tensor data = at::arange(6, at::kDouble).view({2, 3});
  Materialize(parameter, data);
  EXPECT_TRUE(handle.is_leaf() && handle.requires_grad());
  EXPECT_EQ(handle.device(), at::kCPU);
  EXPECT_EQ(handle.scalar_type(), at::kDouble);
  EXPECT_EQ(handle.data_ptr(), data.data_ptr());
  (handle * handle).sum().backward();
  EXPECT_TRUE(parameter.grad().equal(2 * data));
}

TEST(Materialize, TakesTheMemoryAway) {
  const at::Tensor parameter = at::ones({4}).requires_grad_(true);
  Materialize(parameter, at::empty({4}, at::TensorOptions(at::kMeta)));
  EXPECT_TRUE(parameter.is_meta());
  Materialize(parameter, at::ones({4}) * 3);
  EXPECT_EQ(parameter.sum().item<float>(), 12);
}

TEST(MaterializeDeathTest, RefusesAnotherShape) {
  const at::Tensor parameter = at::empty({2, 3}, at::TensorOptions(at::kMeta));
  EXPECT_DEATH(Materialize(parameter, at::ones({3, 2})), "\\[3, 2\\] for a parameter of shape \\[2, 3\\]");
}

// x -> a x + b, with trained `a`, frozen `b` and a buffer; records the contexts of its calls.
struct Affine final : torch::nn::Module, Block {
  explicit Affine(double factor)
      : a(register_parameter("a", at::ones({1, 1}, at::kDouble) * factor)),
        b(register_parameter("b", at::ones({1}, at::kDouble), /*requires_grad=*/false)),
        calls(register_buffer("calls", at::ones({1}, at::kLong))) {}

  BlockState Forward(const BlockState& input, const BlockContext& context) override {
    contexts.push_back(context);
    return {input.hidden * a + b, input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return parameters(); }

  at::Tensor a, b, calls;
  std::vector<BlockContext> contexts;
};

// x + root, then 2 y + 1 and 3 y + 1.
class Toy final : public ModuleModel {
 public:
  Toy() : ModuleModel(std::make_shared<torch::nn::Module>("Toy")) {
    root_ = module()->register_parameter("root", at::ones({1}, at::kDouble));
    for (const int factor : {2, 3}) {
      layers.push_back(std::make_shared<Affine>(factor));
      const std::string name = "layer" + std::to_string(factor);
      AddBlock(name, module()->register_module(name, layers.back()));
    }
  }
  BlockState Prologue(const Batch& batch, const BlockContext& context) override {
    levels.push_back(context.level);
    return {.hidden = batch.inputs + root_};
  }
  at::Tensor Output(const BlockState& state) override { return -state.hidden; }
  LossSum Epilogue(const BlockState& state, const Batch& batch) override {
    return {(state.hidden - batch.targets).sum(), batch.targets.numel()};
  }
  void ResetParameters(std::size_t) override {}
  std::string Description() const override { return "Toy"; }

  std::vector<std::shared_ptr<Affine>> layers;
  std::vector<int> levels;

 private:
  at::Tensor root_;
};

const Batch& Inputs() {
  static const Batch batch = {.inputs = at::arange(3, at::kDouble).view({1, 3}),
                              .targets = at::ones({1, 3}, at::kDouble)};
  return batch;
}

TEST(RunBlocks, RunsThemInTheirOrder) {
  Toy toy;
  // 3 (2 (x + 1) + 1) + 1 = 6 x + 10
  EXPECT_TRUE(RunBlocks(toy, Inputs()).hidden.equal(6 * Inputs().inputs + 10));
  EXPECT_TRUE(RunOutput(toy, Inputs()).equal(-6 * Inputs().inputs - 10));
  EXPECT_TRUE(toy.Forward(Inputs().inputs).equal(-6 * Inputs().inputs - 10));
  const LossSum loss = RunModel(toy, Inputs());
  EXPECT_EQ(loss.sum.item<double>(), 6 * 3 + 3 * 9);
  EXPECT_EQ(loss.count, 3);
  loss.sum.backward();
  EXPECT_EQ(toy.layers[0]->a.grad().item<double>(), 3 * (1 + 2 + 3));
}

TEST(RunBlocks, PassesContextAndState) {
  Toy toy;
  const BlockContext context = {.dt = 0.5, .level = 1, .final = false};
  std::vector<std::size_t> seen;
  const BlockRunner twice = [&](std::size_t block, const BlockState& input, const BlockContext& at_block) {
    EXPECT_EQ(at_block.step, static_cast<std::int64_t>(block));
    seen.push_back(block);
    return toy.blocks()[block]->Forward(toy.blocks()[block]->Forward(input, at_block), at_block);
  };
  // 2 (2 (x + 1) + 1) + 1 = 4 x + 7, then 9 y + 4.
  EXPECT_TRUE(RunBlocks(toy, Inputs(), twice, context).hidden.equal(36 * Inputs().inputs + 67));
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(toy.levels, std::vector<int>{1});
  for (const std::shared_ptr<Affine>& layer : toy.layers) {
    ASSERT_EQ(layer->contexts.size(), 2u);
    EXPECT_EQ(layer->contexts[0].dt, 0.5);
    EXPECT_EQ(layer->contexts[0].level, 1);
    EXPECT_FALSE(layer->contexts[0].final);
  }
}

TEST(ModuleModel, UnitsHoldParametersAndBuffersWithTheirRoles) {
  const Toy toy;
  const std::vector<ParameterUnit> units = toy.units();
  ASSERT_EQ(units.size(), 3u);
  EXPECT_EQ(units[0].name, "root");
  EXPECT_EQ(units[0].block, ParameterUnit::kRoot);
  ASSERT_EQ(units[0].parameters.size(), 1u);
  EXPECT_FALSE(units[0].parameters[0].decays);
  EXPECT_EQ(units[2].name, "layer3");
  EXPECT_EQ(units[2].block, 1);
  ASSERT_EQ(units[2].parameters.size(), 3u);
  const std::vector<std::string> names = {"layer3.a", "layer3.b", "layer3.calls"};
  const std::vector<at::Tensor> tensors = {toy.layers[1]->a, toy.layers[1]->b, toy.layers[1]->calls};
  const ParameterRole roles[] = {ParameterRole::kTrained, ParameterRole::kFrozen, ParameterRole::kBuffer};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(units[2].parameters[i].name, names[i]);
    EXPECT_TRUE(units[2].parameters[i].tensor.is_same(tensors[i]));
    EXPECT_EQ(units[2].parameters[i].role, roles[i]);
    EXPECT_EQ(units[2].parameters[i].decays, i == 0);
  }
  EXPECT_EQ(CountParameters(units), 5);  // without the buffers
}

TEST(UnitsByPrefix, TellsLayer1FromLayer10) {
  const at::Tensor t = at::ones({1});
  const auto units =
      UnitsByPrefix({{"h.1.w", t}, {"h.10.w", t}, {"h", t}, {"h.2", t}}, {"h.1", "h.10", "h.2"});
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[1].parameters[0].name, "h.1.w");
  EXPECT_EQ(units[2].parameters[0].name, "h.10.w");
  EXPECT_TRUE(units[3].parameters.empty());
  EXPECT_EQ(units[0].parameters.size(), 2u);
}

}  // namespace
}  // namespace plait::models
