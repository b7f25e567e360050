#include "residual_net.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <torch/nn/module.h>

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/initial_values.h"
#include "parallel/tensor/linear.h"

namespace tutorial {
namespace {

namespace models = plait::models;
namespace tp = plait::tensor_parallel;

struct Block final : torch::nn::Module, models::Block {
  Block(std::int64_t width, const at::TensorOptions& options)
      : w1(register_parameter("w1", at::empty({4 * width, width}, options))),
        b1(register_parameter("b1", at::empty({4 * width}, options))),
        w2(register_parameter("w2", at::empty({width, 4 * width}, options))),
        b2(register_parameter("b2", at::empty({width}, options))) {}

  // On a rank of tp, w1 has some of the rows, w2 the columns that belong to them.
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    const tp::Residual u(input.hidden);
    const tp::Shard<1> wide =
        Map(ColumnLinear(axis, u, {{w1, b1}})[0], [](const at::Tensor& x) { return at::gelu(x); });
    return {Add(u, RowLinear(axis, wide, {w2, b2}), context.dt).local(), input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return parameters(); }

  at::Tensor w1, b1, w2, b2;
  tp::TensorAxis axis;  // of one rank, until the layers are split
};

}  // namespace

ResidualNet::ResidualNet(std::int64_t in, std::int64_t width, std::int64_t depth,
                         const at::TensorOptions& options)
    : ModuleModel(std::make_shared<torch::nn::Module>("ResidualNet")),
      in_(module()->register_parameter("in", at::empty({width, in}, options))),
      out_(module()->register_parameter("out", at::empty({1, width}, options))) {
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::string name = absl::StrCat("block", i);
    AddBlock(name, module()->register_module(name, std::make_shared<Block>(width, options)));
  }
  SetUsedBy(models::UsedBy::kPrologue, {"in"});  // with pp the first stage alone has it
  SetUsedBy(models::UsedBy::kEpilogue, {"out"});
}

models::BlockState ResidualNet::Prologue(const models::Batch& batch, const models::BlockContext&) {
  return {.hidden = at::linear(batch.inputs, in_)};
}

at::Tensor ResidualNet::Output(const models::BlockState& state) { return at::linear(state.hidden, out_); }

models::LossSum ResidualNet::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  return {at::mse_loss(Output(state), batch.targets, at::Reduction::Sum), batch.targets.size(0)};
}

// Unit 0 is the root, unit i the block i - 1. The numbers of the whole tensor are drawn, whatever part of it a rank of tp has.
void ResidualNet::ResetParameters(std::size_t unit) {
  const auto draw = [this](const at::Tensor& weight, std::int64_t inputs) {
    models::DrawNormal(weight, PlacementOf(weight), 1 / std::sqrt(static_cast<double>(inputs)));
  };
  if (unit == 0) {
    draw(in_, in_.size(1));
    return draw(out_, out_.size(1));
  }
  const auto& block = static_cast<const Block&>(*blocks()[unit - 1]);
  const std::int64_t width = in_.size(0);
  draw(block.w1, width);
  draw(block.w2, 4 * width);
  models::Fill(block.b1, 0);
  models::Fill(block.b2, 0);
}

std::string ResidualNet::Description() const {
  return absl::StrCat("ResidualNet of ", blocks().size(), " blocks");
}

std::vector<tp::SplitGroup> ResidualNet::SplitGroups(int /*ranks*/) {
  std::vector<tp::SplitGroup> groups;
  for (std::size_t i = 0; i < blocks().size(); ++i) {
    const std::string name = absl::StrCat("block", i);
    const auto block =
        std::static_pointer_cast<Block>(std::dynamic_pointer_cast<torch::nn::Module>(blocks()[i]));
    groups.push_back(
        {.name = name,
         .layers =
             {{.name = name + ".w1", .split = tp::Split::kColumns, .weight = block->w1, .bias = block->b1},
              {.name = name + ".w2", .split = tp::Split::kRows, .weight = block->w2, .bias = block->b2}},
         .use = [block](const tp::TensorAxis& axis) { block->axis = axis; }});
  }
  return groups;
}

}  // namespace tutorial
