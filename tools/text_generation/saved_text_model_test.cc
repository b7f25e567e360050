// A Llama in Hugging Face's layout with its tokenizer: tokens are those of the file, and the text is theirs.
#include "tools/text_generation/saved_text_model.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "models/llama/llama.h"
#include "models/llama/safetensors.h"
#include "tools/text_generation/samples.h"

namespace plait::text_generation {
namespace {

constexpr char kTokenizer[] = "data/text/testing/tokenizer.model";  // 400 tokens

std::string SavedLlama(const std::string& name, std::int64_t vocabulary) {
  std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::create_directories(folder);
  at::manual_seed(7);
  const llama::Llama llama({.vocab_size = vocabulary,
                            .max_seq_len = 16,
                            .dim = 16,
                            .n_layers = 1,
                            .n_heads = 2,
                            .n_kv_heads = 1,
                            .hidden = 8},
                           at::kFloat);
  EXPECT_TRUE(llama::SaveHuggingFaceLlama(llama, folder).ok());
  return folder;
}

TEST(SavedTextModel, OfALlamaHasItsTokenizer) {
  const std::string folder = SavedLlama("llama", 400);
  std::filesystem::copy_file(kTokenizer, folder + "/tokenizer.model");
  absl::StatusOr<SavedTextModel> saved = LoadHuggingFace(folder, "", at::kFloat);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->tokenizer->name(), "SentencePiece");
  Request request;
  request.prompt = "the cat";
  request.max_new_tokens = 6;
  request.num_samples = 1;
  request.sampling.temperature = 0;
  std::string text;
  const auto status =
      WriteSamples(request, *saved, [&](absl::string_view part) { text.append(part.data(), part.size()); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(text.substr(0, 7), "the cat");
  EXPECT_NE(text.find("6 tokens in "), std::string::npos);
}

TEST(SavedTextModel, WithoutATokenizerSaysWhatIsMissing) {
  const std::string folder = SavedLlama("bare", 300);
  EXPECT_EQ(LoadHuggingFace(folder, "", at::kFloat).status().message(),
            folder +
                ": no tokenizer; expected tokenizer.model (SentencePiece, as Llama's), or vocab.json with "
                "merges.txt (GPT-2's); --bpe-folder says where else");
}

TEST(SavedTextModel, AVocabularyThatIsTooLargeIsRefused) {
  const std::string folder = SavedLlama("small", 399);
  std::filesystem::copy_file(kTokenizer, folder + "/tokenizer.model");
  EXPECT_EQ(LoadHuggingFace(folder, "", at::kFloat).status().message(),
            folder + ": the model has 399 tokens, its vocabulary 400");
}

TEST(SavedTextModel, ADamagedTokenizerIsNamed) {
  const std::string folder = SavedLlama("damaged", 300);
  std::ofstream(folder + "/tokenizer.model") << "no model";
  EXPECT_EQ(LoadHuggingFace(folder, "", at::kFloat).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace plait::text_generation
