// The table's rows against the model and its formulas.
#include "models/gpt/summary.h"

#include <gtest/gtest.h>

#include "models/gpt/gpt.h"

namespace plait::gpt {
namespace {

TEST(LayersOf, HasTheModelsParameters) {
  for (const bool bias : {true, false}) {
    const GptOptions options = {.vocab_size = 65, .block_size = 32, .n_layer = 3, .n_embd = 96, .bias = bias};
    const models::Layer layers = LayersOf(options, 4, 16);
    EXPECT_EQ(models::TotalsOf(layers).parameters,
              models::CountParameters(Gpt(options, at::TensorOptions(at::kMeta)).units()));
  }
}

// Every kind of expert; with them in every block, and in every second one.
TEST(LayersOf, HasTheParametersAndOperationsOfExperts) {
  GptOptions options = {
      .vocab_size = 65, .block_size = 32, .n_layer = 4, .n_head = 8, .n_embd = 96, .bias = false};
  for (const std::int64_t every : {1, 2}) {
    for (const bool gated : {true, false}) {
      for (const moe::GateKind gate :
           {moe::GateKind::kTopK, moe::GateKind::kNoisyTopK, moe::GateKind::kBias}) {
        options.moe = {.hidden = 40, .gated = gated, .bias = gated, .shared_hidden = gated ? 24 : 0};
        options.moe.gate = {.kind = gate, .experts = 5, .k = 3};
        options.moe_every = every;
        const models::Totals totals = models::TotalsOf(LayersOf(options, 4, 16));
        const Gpt gpt(options, at::TensorOptions(at::kMeta));
        EXPECT_EQ(totals.parameters, models::CountParameters(gpt.units()));
        EXPECT_EQ(totals.parameters, ParameterCount(options, /*with_positions=*/true));
        if (gated) continue;  // biases are no products
        const double per_token = static_cast<double>(totals.mult_adds) / (4 * 16), norms = 9 * 96;
        EXPECT_EQ(6 * per_token, FlopsPerToken(options, 16) - 6 * norms);
      }
    }
  }
}

// A step is three times the forward pass, a mult-add two operations. Norms are not products.
TEST(LayersOf, HasTheOperationsOfTheFormula) {
  const GptOptions options = {.vocab_size = 65, .bias = false};
  const std::int64_t batch = 4, seq = 1024, norms = (2 * 12 + 1) * 768;
  const double per_token =
      static_cast<double>(models::TotalsOf(LayersOf(options, batch, seq)).mult_adds) / (batch * seq);
  EXPECT_EQ(6 * per_token, FlopsPerToken(options, seq) - 6.0 * norms);
}

TEST(LayersOf, PrintsAsTheModelIsBuilt) {
  const std::string table = models::TableText(LayersOf({.vocab_size = 65, .bias = false}, 64, 1024),
                                              {.depth = 5, .input_bytes = 8 * 64 * 1024});
  const std::string expected = R"(
GPT                                       [64, 1024, 65]            --
├─ModuleDict: 1-1                         --                        --
│    └─Embedding: 2-1                     [64, 1024, 768]           49,920
│    └─Embedding: 2-2                     [1024, 768]               786,432
│    └─Dropout: 2-3                       [64, 1024, 768]           --
│    └─ModuleList: 2-4                    --                        --
│    │    └─Block: 3-1                    [64, 1024, 768]           --
│    │    │    └─LayerNorm: 4-1           [64, 1024, 768]           768
│    │    │    └─CausalSelfAttention: 4-2 [64, 1024, 768]           --
│    │    │    │    └─Linear: 5-1         [64, 1024, 2304]          1,769,472
│    │    │    │    └─Linear: 5-2         [64, 1024, 768]           589,824
│    │    │    │    └─Dropout: 5-3        [64, 1024, 768]           --
│    │    │    └─LayerNorm: 4-3           [64, 1024, 768]           768
│    │    │    └─MLP: 4-4                 [64, 1024, 768]           --
│    │    │    │    └─Linear: 5-4         [64, 1024, 3072]          2,359,296
│    │    │    │    └─GELU: 5-5           [64, 1024, 3072]          --
│    │    │    │    └─Linear: 5-6         [64, 1024, 768]           2,359,296
│    │    │    │    └─Dropout: 5-7        [64, 1024, 768]           --
│    │    └─Block: 3-2 to 3-12 (each)     [64, 1024, 768]           7,079,424
│    └─LayerNorm: 2-5                     [64, 1024, 768]           768
├─Linear: 1-2                             [64, 1024, 65]            (shared)
)";
  EXPECT_NE(table.find(expected), std::string::npos) << table;
  EXPECT_NE(table.find("\nTotal params: 85,790,208\n"), std::string::npos) << table;
}

}  // namespace
}  // namespace plait::gpt
