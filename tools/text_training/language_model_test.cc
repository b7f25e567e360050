// What is known of models from their options alone.
#include "tools/text_training/language_model.h"

#include <gtest/gtest.h>

namespace plait::text_training {
namespace {

TEST(ActivationsTest, OfAGptGrowAsTheModel) {
  const gpt::GptOptions options = {
      .vocab_size = 65, .block_size = 256, .n_layer = 4, .n_head = 4, .n_embd = 128};
  const std::int64_t plain = ActivationBytesPerSample(options, 64, 4, 0);
  // By hand: 4 blocks of 16 * 64 * 128 numbers, 3 * 64 * 128 around them, logits twice.
  EXPECT_EQ(plain, 4 * (4 * 16 * 8192 + 3 * 8192 + 2 * 64 * 65));
  EXPECT_EQ(ActivationBytesPerSample(options, 64, 2, 0), plain / 2);
  // All blocks checkpointed: one in work, four inputs.
  EXPECT_EQ(ActivationBytesPerSample(options, 64, 4, 4), 4 * (16 * 8192 + 4 * 8192 + 3 * 8192 + 2 * 64 * 65));
  EXPECT_LT(ActivationBytesPerSample(options, 64, 4, 2), plain);
}

// 24 layers, width 256, hidden 720, 128 of 32,000 tokens.
TEST(ActivationsTest, OfALlama) {
  const llama::LlamaOptions options;
  EXPECT_EQ(ActivationBytesPerSample(options, 128, 4, 0),
            4 * 128 * (24 * (10 * 256 + 5 * 720) + 3 * 256 + 2 * 32000));
  EXPECT_EQ(ActivationBytesPerSample(options, 128, 4, 24),
            4 * 128 * (10 * 256 + 5 * 720 + 24 * 256 + 3 * 256 + 2 * 32000));
}

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
