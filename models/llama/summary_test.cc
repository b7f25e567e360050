// The table's rows against the model, its formulas, and the published table.
#include "models/llama/summary.h"

#include <gtest/gtest.h>

#include "models/llama/llama.h"

namespace plait::llama {
namespace {

TEST(LayersOf, HasTheModelsParameters) {
  for (const std::int64_t kv_heads : {1, 4, 16}) {
    const LlamaOptions options = {
        .vocab_size = 65, .dim = 64, .n_layers = 3, .n_kv_heads = kv_heads, .hidden = 100};
    const models::Layer layers = LayersOf(options, 4, 16);
    EXPECT_EQ(models::TotalsOf(layers).parameters,
              models::CountParameters(Llama(options, at::TensorOptions(at::kMeta)).units()));
    EXPECT_EQ(models::TotalsOf(layers).parameters, ParameterCount(options));
  }
}

// A step is three times the forward pass, a mult-add two operations. Norms are not products.
TEST(LayersOf, HasTheOperationsOfTheFormula) {
  const std::int64_t batch = 4, seq = 128, norms = (2 * 24 + 1) * 256;
  const double per_token =
      static_cast<double>(models::TotalsOf(LayersOf({}, batch, seq)).mult_adds) / (batch * seq);
  EXPECT_EQ(6 * per_token, FlopsPerToken({}, seq) - 6.0 * norms);
}

// 32 query heads with 8 key heads have the same sizes.
TEST(LayersOf, PrintsThePublishedTable) {
  for (const LlamaOptions& options : {LlamaOptions{}, {.n_heads = 32, .n_kv_heads = 8}}) {
    const std::string table =
        models::TableText(LayersOf(options, 16, 128), {.depth = 2, .input_bytes = 8 * 16 * 128});
    const std::string expected = R"(
Transformer                                 [16, 128, 32000]          --
├─Embedding: 1-1                            [16, 128, 256]            8,192,000
├─ModuleList: 1-2                           --                        --
│    └─TransformerBlock: 2-1                [16, 128, 256]            717,312
│    └─TransformerBlock: 2-2 to 2-24 (each) [16, 128, 256]            717,312
├─RMSNorm: 1-3                              [16, 128, 256]            256
├─Linear: 1-4                               [16, 128, 32000]          8,192,000
)";
    EXPECT_NE(table.find(expected), std::string::npos) << table;
    EXPECT_NE(table.find("\nTotal params: 33,599,744\n"), std::string::npos) << table;
  }
}

}  // namespace
}  // namespace plait::llama
