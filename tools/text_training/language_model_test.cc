// Properties of models that follow from their options.
#include "tools/text_training/language_model.h"

#include <gtest/gtest.h>

namespace plait::text_training {
namespace {

TEST(ModelOptions, KnowTheirModel) {
  const ModelOptions gpt =
      gpt::GptOptions{.vocab_size = 7, .block_size = 9, .n_layer = 1, .n_head = 2, .n_embd = 8};
  const ModelOptions llama = llama::LlamaOptions{.vocab_size = 8, .max_seq_len = 10};
  EXPECT_EQ(VocabularyOf(gpt), 7);
  EXPECT_EQ(PositionsOf(gpt), 9);
  EXPECT_EQ(VocabularyOf(llama), 8);
  EXPECT_EQ(PositionsOf(llama), 10);
  EXPECT_EQ(MakeModel(gpt, at::TensorOptions(at::kMeta))->Description().substr(0, 4), "GPT(");
  EXPECT_EQ(MakeModel(llama, at::TensorOptions(at::kMeta))->Description().substr(0, 12), "Transformer(");
}

}  // namespace
}  // namespace plait::text_training
