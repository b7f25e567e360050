// Batched calls of several blocks against single calls.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "models/llama/llama.h"
#include "models/stackable_block.h"

namespace plait::llama {
namespace {

constexpr std::int64_t kBatch = 2, kSeq = 6, kDim = 24;

Llama Drawn(std::int64_t kv_heads) {
  Llama llama({.vocab_size = 11,
               .max_seq_len = 9,
               .dim = kDim,
               .n_layers = 3,
               .n_heads = 6,
               .n_kv_heads = kv_heads,
               .hidden = 20,
               .rope_theta = 50},
              at::kDouble);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : llama.parameters()) parameter.normal_(0, 0.3);
  return llama;
}

std::vector<models::BlockCall> CallsOf(const Llama& llama, const std::vector<std::size_t>& blocks,
                                       bool one_step = false) {
  std::vector<models::BlockCall> calls;
  for (const std::size_t block : blocks) {
    const double dt = one_step ? 0.5 : 0.25 * static_cast<double>(calls.size() + 1);
    calls.push_back({llama.blocks()[block].get(),
                     at::randn({kBatch, kSeq, kDim}, at::kDouble),
                     {.dt = dt, .final = false}});
  }
  return calls;
}

std::vector<at::Tensor> Together(const std::vector<models::BlockCall>& calls) {
  auto* const stackable = dynamic_cast<models::StackableBlock*>(calls[0].block);
  return stackable == nullptr ? std::vector<at::Tensor>() : stackable->ForwardMany(calls);
}

TEST(BlockMany, GivesWhatForwardGives) {
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  for (const std::int64_t kv_heads : {6, 2, 1}) {
    const Llama llama = Drawn(kv_heads);
    for (const std::vector<models::BlockCall>& calls :
         {CallsOf(llama, {0, 1, 2}), CallsOf(llama, {0, 1, 2}, /*one_step=*/true), CallsOf(llama, {2, 0}),
          CallsOf(llama, {1, 1})}) {
      const std::vector<at::Tensor> results = Together(calls);
      ASSERT_EQ(results.size(), calls.size());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const at::Tensor expected = calls[i].block->Forward({calls[i].hidden}, calls[i].context).hidden;
        ASSERT_EQ(results[i].sizes(), expected.sizes());
        // Products of at most 24 terms, the norms' and the softmax's sums behind each other; a block's Lipschitz
        // constant is some tens.
        EXPECT_LE((results[i] - expected).abs().max().item<double>(),
                  1e3 * 24 * 0x1p-53 * expected.abs().max().item<double>())
            << "call " << i;
        EXPECT_GT((results[i] - calls[i].hidden).abs().max().item<double>(), 0.01);
      }
    }
  }
}

TEST(BlockMany, IsNotGivenWhereCallsDiffer) {
  const at::NoGradGuard no_grad;
  const Llama a = Drawn(2), b = Drawn(2);
  EXPECT_FALSE(Together(CallsOf(a, {0, 1})).empty());
  std::vector<models::BlockCall> of_two_models = CallsOf(a, {0, 1});
  of_two_models[1] = CallsOf(b, {1})[0];
  EXPECT_TRUE(Together(of_two_models).empty());
  std::vector<models::BlockCall> shorter = CallsOf(a, {0, 1});
  shorter[1].hidden = shorter[1].hidden.narrow(1, 0, 3);
  EXPECT_TRUE(Together(shorter).empty());
}

}  // namespace
}  // namespace plait::llama
