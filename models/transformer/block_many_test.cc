// Batched calls of several blocks against single calls.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "models/transformer/block.h"

namespace plait::transformer {
namespace {

constexpr std::int64_t kBatch = 2, kSeq = 6;
constexpr BlockNames kNames = {"ln_1", "attn", "c_attn", "c_proj", "ln_2", "mlp", "c_fc", "c_proj"};

struct Layer {
  explicit Layer(const BlockOptions& options) : module(std::make_shared<torch::nn::Module>("Layer")) {
    block = std::make_shared<Block>(module, 0, options, kNames, at::kDouble);
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : block->Parameters()) parameter.normal_(0, 0.3);
    module->eval();
  }
  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<Block> block;
};

BlockOptions Options() { return {.width = 12, .heads = 3, .head_width = 4, .hidden = 20}; }

std::vector<models::BlockCall> CallsOf(const std::vector<Layer>& layers, bool one_step = false) {
  std::vector<models::BlockCall> calls;
  for (const Layer& layer : layers) {
    const double dt = one_step ? 0.5 : 0.25 * static_cast<double>(calls.size() + 1);
    calls.push_back(
        {layer.block.get(), at::randn({kBatch, kSeq, 12}, at::kDouble), {.dt = dt, .final = false}});
  }
  return calls;
}

void ExpectThoseOfForward(const std::vector<models::BlockCall>& calls) {
  const at::NoGradGuard no_grad;
  auto* const stackable = dynamic_cast<models::StackableBlock*>(calls[0].block);
  ASSERT_NE(stackable, nullptr);
  const std::vector<at::Tensor> results = stackable->ForwardMany(calls);
  ASSERT_EQ(results.size(), calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const at::Tensor expected = calls[i].block->Forward({calls[i].hidden}, calls[i].context).hidden;
    ASSERT_EQ(results[i].sizes(), expected.sizes());
    // Four products of at most 20 terms, the norms' and the softmax's sums behind each other; a block's Lipschitz
    // constant is some tens.
    EXPECT_LE((results[i] - expected).abs().max().item<double>(),
              1e3 * 20 * 0x1p-53 * expected.abs().max().item<double>())
        << "call " << i;
    EXPECT_GT((results[i] - calls[i].hidden).abs().max().item<double>(), 0.01);
  }
}

TEST(BlockMany, GivesWhatForwardGives) {
  at::manual_seed(3);
  for (const bool causal : {true, false}) {
    for (const bool bias : {true, false}) {
      for (const auto gelu : {rowwise::GeluKind::kExact, rowwise::GeluKind::kTanh}) {
        BlockOptions options = Options();
        options.causal = causal;
        options.bias = options.qkv_bias = bias;
        options.gelu = gelu;
        const std::vector<Layer> layers = {Layer(options), Layer(options), Layer(options)};
        ExpectThoseOfForward(CallsOf(layers));
        ExpectThoseOfForward(CallsOf(layers, /*one_step=*/true));
        ExpectThoseOfForward(CallsOf({layers[0], layers[0]}));
      }
    }
  }
}

TEST(BlockMany, IsNotGivenWhereCallsDiffer) {
  const auto none = [](const std::vector<models::BlockCall>& calls) {
    return dynamic_cast<models::StackableBlock&>(*calls[0].block).ForwardMany(calls).empty();
  };
  const Layer a(Options()), b(Options());
  EXPECT_FALSE(none(CallsOf({a, b})));
  BlockOptions wide = Options();
  wide.hidden = 24;
  EXPECT_TRUE(none(CallsOf({a, Layer(wide)})));
  BlockOptions full = Options();
  full.causal = false;
  EXPECT_TRUE(none(CallsOf({a, Layer(full)})));
  BlockOptions dropping = Options();
  dropping.dropout = 0.5;
  const Layer drops(dropping);
  EXPECT_FALSE(none(CallsOf({drops, drops})));
  drops.module->train();
  EXPECT_TRUE(none(CallsOf({drops, drops})));
  std::vector<models::BlockCall> shorter = CallsOf({a, b});
  shorter[1].hidden = shorter[1].hidden.narrow(1, 0, 3);
  EXPECT_TRUE(none(shorter));
}

}  // namespace
}  // namespace plait::transformer
