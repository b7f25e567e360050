// Files that we write and read; models/hugging_face/transformers_test.py compares with Transformers.
#include "models/gpt/safetensors.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "models/hugging_face/config.h"
#include "models/hugging_face/testing/safetensors_files.h"

namespace plait::gpt {
namespace {

using hugging_face::testing::DrawParameters, hugging_face::testing::ExpectReads,
    hugging_face::testing::Folder, hugging_face::testing::ReplaceTensor;
using ::testing::HasSubstr;

GptOptions Small(bool bias) {
  return {.vocab_size = 11, .block_size = 9, .n_layer = 2, .n_head = 3, .n_embd = 12, .bias = bias};
}

Gpt Drawn(bool bias, at::ScalarType type) {
  Gpt gpt(Small(bias), type);
  DrawParameters(gpt);
  return gpt;
}

struct Case {
  bool bias;
  at::ScalarType type;
};

class RoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(RoundTrip, GivesTheSameBits) {
  const std::string folder = Folder("round_trip");
  const Gpt gpt = Drawn(GetParam().bias, GetParam().type);
  ASSERT_TRUE(SaveHuggingFaceGpt2(gpt, folder).ok());
  const auto files = HuggingFaceGpt2::Open(folder);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->options(), gpt.options());
  ExpectReads(*files, Gpt(files->options(), at::TensorOptions(at::kMeta)), gpt);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RoundTrip,
                         ::testing::Values(Case{true, at::kFloat}, Case{false, at::kFloat},
                                           Case{true, at::kBFloat16}, Case{false, at::kDouble}));

// One tensor replaced, or taken out where it has no data.
absl::Status AfterChange(const std::string& name, const at::Tensor& replacement, bool bias = true) {
  const std::string folder = Folder("changed");
  EXPECT_TRUE(SaveHuggingFaceGpt2(Drawn(bias, at::kFloat), folder).ok());
  ReplaceTensor(folder, name, replacement);
  const auto files = HuggingFaceGpt2::Open(folder);
  if (!files.ok()) return files.status();
  return files->ReadAll(Gpt(files->options(), at::kFloat));
}

TEST(HuggingFaceGpt2, RefusesFilesOfAnotherModel) {
  const std::string projection = "transformer.h.1.attn.c_proj.weight";
  EXPECT_TRUE(AfterChange(projection, at::randn({12, 12})).ok());
  EXPECT_EQ(AfterChange(projection, {}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(AfterChange(projection, {}).message(), HasSubstr("h.1.attn.c_proj.weight"));
  // (out, in) where (in, out) is right.
  EXPECT_THAT(AfterChange("transformer.h.0.mlp.c_fc.weight", at::randn({48, 12})).message(),
              HasSubstr("F32 [12, 48]"));
  EXPECT_THAT(AfterChange("score.weight", at::randn({2, 12})).message(),
              HasSubstr("holds \"score.weight\", which a GPT-2 of 2 layers does not have"));
  EXPECT_THAT(AfterChange("transformer.h.2.ln_1.weight", at::randn({12})).message(),
              HasSubstr("of 2 layers"));
  EXPECT_THAT(AfterChange("lm_head.weight", at::randn({11, 12})).message(),
              HasSubstr("lm_head.weight is not transformer.wte.weight; Plait's GPT has a tied head"));
  EXPECT_THAT(AfterChange("transformer.h.0.ln_2.bias", at::randn({12}), /*bias=*/false).message(),
              HasSubstr("h.0.ln_2.bias\" is not zero"));
}

TEST(HuggingFaceGpt2, NamesWhatIsMissing) {
  EXPECT_THAT(HuggingFaceGpt2::Open(Folder("empty")).status().message(), HasSubstr("empty/config.json"));
  const std::string folder = Folder("config_only");
  std::ofstream(folder + "/config.json") << ConfigText(Small(true));
  EXPECT_EQ(HuggingFaceGpt2::Open(folder).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(folder + "/config.json") << "{\"model_type\": \"llama\"}";
  EXPECT_THAT(HuggingFaceGpt2::Open(folder).status().message(),
              HasSubstr("config_only/config.json: \"model_type\" is \"llama\"; expected \"gpt2\""));
}

std::string Problem(const std::string& keys) {
  const auto options = OptionsFromConfig("{\"model_type\": \"gpt2\", " + keys + "}");
  return std::string(options.status().message());
}

TEST(HuggingFaceGpt2, ExpertsAreNotWrittenAsDenseLayers) {
  const std::string folder = Folder("experts");
  GptOptions options = Small(true);
  options.moe = {.gate = {.experts = 2}, .hidden = 8};
  options.moe_every = 1;
  EXPECT_THAT(SaveHuggingFaceGpt2(Gpt(options, at::kFloat), folder).message(),
              HasSubstr("a GPT with experts cannot be written"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(OptionsFromConfig, NamesFunctionsThatTheModelDoesNotHave) {
  EXPECT_EQ(Problem("\"n_layer\": -3"), "\"n_layer\" is -3; expected an integer from 1 to 2147483648");
  EXPECT_EQ(Problem("\"n_layer\": \"many\""),
            "\"n_layer\" is \"many\"; expected an integer from 1 to 2147483648");
  EXPECT_EQ(Problem("\"n_layer\": 99999999999999999999"),
            "\"n_layer\" is 1e+20; expected an integer from 1 to 2147483648");
  EXPECT_EQ(Problem("\"n_layer\": 4611686018427387904"),
            "\"n_layer\" is 4611686018427387904; expected an integer from 1 to 2147483648");
  EXPECT_EQ(Problem("\"activation_function\": \"relu\""),
            "\"activation_function\" is \"relu\"; expected \"gelu\", \"gelu_new\" or \"gelu_pytorch_tanh\"");
  EXPECT_EQ(Problem("\"n_inner\": 100"), "\"n_inner\" is 100; expected null or 4 n_embd");
  EXPECT_EQ(Problem("\"layer_norm_epsilon\": 1e-06"), "\"layer_norm_epsilon\" is 1e-06; expected 1e-05");
  EXPECT_EQ(Problem("\"tie_word_embeddings\": false"), "\"tie_word_embeddings\" is false; expected true");
  EXPECT_EQ(Problem("\"n_head\": 7"), "n_embd is 768; expected a multiple of n_head, which is 7");
  EXPECT_EQ(OptionsFromConfig("[1").status().message(), "is not a JSON object");
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(Problem("\"n_layer\": " + deep), "is nested 200001 deep; expected 64 at most");
}

// Before memory is taken for a model of those sizes.
TEST(HuggingFaceGpt2, HoldsSizesAgainstTheFiles) {
  const std::string folder = Folder("sizes");
  ASSERT_TRUE(SaveHuggingFaceGpt2(Drawn(true, at::kFloat), folder).ok());
  for (const auto& [change, problem] :
       {std::pair<std::function<void(GptOptions&)>, std::string>(
            [](GptOptions& o) { o.n_layer = 1'000'000'000; },
            "the options ask for 1000000000 layers, but the files hold 28 tensors"),
        {[](GptOptions& o) { o.vocab_size = std::int64_t{1} << 31; },
         "parameters of 2147483648 x 12 numbers"},
        {[](GptOptions& o) { o.n_embd = o.n_head << 28; }, "numbers, but the files hold "}}) {
    GptOptions options = Small(true);
    change(options);
    std::ofstream(folder + "/config.json") << ConfigText(options);
    const absl::Status status = HuggingFaceGpt2::Open(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("sizes/config.json: the options ask for"));
    EXPECT_THAT(status.message(), HasSubstr(problem));
  }
}

TEST(ConfigText, BeginsTextsWithTheTokenThatEndsThemUnlessTheModelHasAnother) {
  using hugging_face::SpecialTokensFrom;
  EXPECT_EQ(SpecialTokensFrom(ConfigText(Small(true)))->begin_of_text, std::nullopt);
  EXPECT_EQ(SpecialTokensFrom(ConfigText(Small(true), {.ends_of_text = {7, 8}}))->begin_of_text, 7);
  const hugging_face::SpecialTokens both = {.begin_of_text = 3, .ends_of_text = {7, 8}};
  EXPECT_EQ(*SpecialTokensFrom(ConfigText(Small(true), both)), both);
}

TEST(OptionsFromConfig, HasTransformersDefaults) {
  EXPECT_EQ(*OptionsFromConfig("{\"model_type\": \"gpt2\"}"), *PresetNamed("gpt2"));
}

// Transformers' attribute_map: these set the same options, and count where both are there.
TEST(OptionsFromConfig, ReadsTheCommonNamesOfSizes) {
  GptOptions expected = *PresetNamed("gpt2");
  expected.block_size = 64;
  expected.n_layer = 2;
  expected.n_head = 16;
  expected.n_embd = 256;
  const auto options = OptionsFromConfig(
      "{\"model_type\": \"gpt2\", \"n_head\": 8, \"num_attention_heads\": 16, \"hidden_size\": 256, "
      "\"num_hidden_layers\": 2, \"max_position_embeddings\": 64}");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(*options, expected);
}

}  // namespace
}  // namespace plait::gpt
