// Files that we write and read; models/hugging_face/transformers_test.py compares with Transformers.
#include "models/llama/safetensors.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <tuple>

#include "models/hugging_face/config.h"
#include "models/hugging_face/testing/safetensors_files.h"

namespace plait::llama {
namespace {

using hugging_face::testing::DrawParameters, hugging_face::testing::ExpectReads,
    hugging_face::testing::Folder, hugging_face::testing::ReplaceTensor;
using ::testing::HasSubstr;

// Three query heads of width 4 share a key head.
LlamaOptions Small() {
  return {.vocab_size = 11,
          .max_seq_len = 9,
          .dim = 24,
          .n_layers = 2,
          .n_heads = 6,
          .n_kv_heads = 2,
          .hidden = 20,
          .norm_eps = 3e-5,
          .rope_theta = 500};
}

Llama Drawn(at::ScalarType type) {
  Llama llama(Small(), type);
  DrawParameters(llama);
  return llama;
}

TEST(HuggingFaceLlama, GivesTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const std::string folder = Folder("round_trip");
    const Llama llama = Drawn(type);
    ASSERT_TRUE(SaveHuggingFaceLlama(llama, folder, {.max_shard_bytes = 3000}).ok());
    const auto files = HuggingFaceLlama::Open(folder);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(files->options(), Small());
    EXPECT_FALSE(files->tied());
    ExpectReads(*files, Llama(files->options(), at::TensorOptions(at::kMeta)), llama);
  }
}

// In files the elements that are turned together are half a head apart. Written out by hand: row 2 i + part
// of a head lies in row part * width / 2 + i.
TEST(HuggingFaceLlama, PermutesRowsOfQueriesAndKeys) {
  const std::string folder = Folder("permuted");
  const Llama llama = Drawn(at::kFloat);
  ASSERT_TRUE(SaveHuggingFaceLlama(llama, folder).ok());
  const auto model = data::safetensors::Model::Open(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto block = llama.units()[1].parameters;
  for (const auto& [name, parameter, heads] : {std::tuple("q", block[0], 6), {"k", block[1], 2}}) {
    ASSERT_THAT(parameter.name, HasSubstr(std::string("attention.w") + name));
    const auto view = model->Find(std::string("model.layers.0.self_attn.") + name + "_proj.weight");
    ASSERT_TRUE(view.ok()) << view.status();
    const auto* file = static_cast<const float*>(view->data);
    const float* ours = parameter.tensor.const_data_ptr<float>();
    for (int head = 0; head < heads; ++head) {
      for (int i = 0; i < 2; ++i) {
        for (int part = 0; part < 2; ++part) {
          const int here = 4 * head + 2 * i + part, there = 4 * head + 2 * part + i;
          for (int k = 0; k < 24; ++k) EXPECT_EQ(file[24 * there + k], ours[24 * here + k]) << name;
        }
      }
    }
  }
}

// One tensor replaced, or taken out where it has no data.
absl::Status AfterChange(const std::string& name, const at::Tensor& replacement) {
  const std::string folder = Folder("changed");
  EXPECT_TRUE(SaveHuggingFaceLlama(Drawn(at::kFloat), folder).ok());
  ReplaceTensor(folder, name, replacement);
  const auto files = HuggingFaceLlama::Open(folder);
  if (!files.ok()) return files.status();
  return files->ReadAll(Llama(files->options(), at::kFloat));
}

TEST(HuggingFaceLlama, RefusesFilesOfAnotherModel) {
  const std::string keys = "model.layers.1.self_attn.k_proj.weight";
  EXPECT_TRUE(AfterChange(keys, at::randn({8, 24})).ok());
  EXPECT_EQ(AfterChange(keys, {}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(AfterChange(keys, {}).message(), HasSubstr("layers.1.self_attn.k_proj.weight"));
  // As many key heads as query heads.
  EXPECT_THAT(AfterChange(keys, at::randn({24, 24})).message(), HasSubstr("F32 [8, 24]"));
  EXPECT_THAT(AfterChange("model.layers.0.self_attn.q_proj.bias", at::randn({24})).message(),
              HasSubstr("q_proj.bias\", which a Llama of 2 layers does not have"));
  EXPECT_THAT(AfterChange("model.layers.2.input_layernorm.weight", at::randn({24})).message(),
              HasSubstr("of 2 layers"));
  EXPECT_EQ(AfterChange("lm_head.weight", {}).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(AfterChange("model.layers.0.self_attn.rotary_emb.inv_freq", at::randn({2})).ok());
}

TEST(HuggingFaceLlama, ATiedHeadIsTheEmbeddingOrIsNotThere) {
  const std::string folder = Folder("tied");
  const Llama llama = Drawn(at::kFloat);
  ASSERT_TRUE(SaveHuggingFaceLlama(llama, folder).ok());
  std::string text = ConfigText(Small());
  const std::string untied = "\"tie_word_embeddings\": false";
  ASSERT_NE(text.find(untied), std::string::npos) << text;
  text.replace(text.find(untied), untied.size(), "\"tie_word_embeddings\": true");
  std::ofstream(folder + "/config.json") << text;
  EXPECT_THAT(HuggingFaceLlama::Open(folder).status().message(),
              HasSubstr("lm_head.weight is not model.embed_tokens.weight; config.json has "
                        "\"tie_word_embeddings\": true; expected false, or no head"));
  ReplaceTensor(folder, "lm_head.weight", llama.units()[0].parameters[0].tensor);
  EXPECT_TRUE(HuggingFaceLlama::Open(folder).ok());
  ReplaceTensor(folder, "lm_head.weight", {});
  EXPECT_TRUE(HuggingFaceLlama::Open(folder).ok());
}

TEST(HuggingFaceLlama, NamesWhatIsMissing) {
  EXPECT_THAT(HuggingFaceLlama::Open(Folder("empty")).status().message(), HasSubstr("empty/config.json"));
  const std::string folder = Folder("config_only");
  std::ofstream(folder + "/config.json") << ConfigText(Small());
  EXPECT_EQ(HuggingFaceLlama::Open(folder).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(folder + "/config.json") << "{\"model_type\": \"mistral\"}";
  EXPECT_THAT(HuggingFaceLlama::Open(folder).status().message(),
              HasSubstr("config_only/config.json: \"model_type\" is \"mistral\"; expected \"llama\""));
}

std::string Problem(const std::string& keys) {
  const auto config = ConfigFrom("{\"model_type\": \"llama\", " + keys + "}");
  return std::string(config.status().message());
}

TEST(LlamaConfig, NamesFunctionsThatTheModelDoesNotHave) {
  EXPECT_EQ(Problem("\"num_hidden_layers\": -3"),
            "\"num_hidden_layers\" is -3; expected an integer from 1 to 2147483648");
  EXPECT_EQ(Problem("\"rms_norm_eps\": \"small\""),
            "\"rms_norm_eps\" is \"small\"; expected a positive number");
  EXPECT_EQ(Problem("\"hidden_act\": \"gelu\""), "\"hidden_act\" is \"gelu\"; expected \"silu\"");
  EXPECT_EQ(Problem("\"attention_bias\": true"), "\"attention_bias\" is true; expected false");
  EXPECT_EQ(Problem("\"mlp_bias\": true"), "\"mlp_bias\" is true; expected false");
  EXPECT_EQ(Problem("\"head_dim\": 64"),
            "\"head_dim\" is 64; expected null or hidden_size / num_attention_heads");
  EXPECT_EQ(Problem("\"tie_word_embeddings\": 1"), "\"tie_word_embeddings\" is 1; expected true or false");
  EXPECT_EQ(Problem("\"num_key_value_heads\": 5"),
            "n_kv_heads is 5; expected a divisor of n_heads, which is 32");
  EXPECT_EQ(Problem("\"max_position_embeddings\": 2147483648"),
            "max_seq_len is 2147483648; expected at most 2097152, for heads of width 128");
  const std::string scaled = "expected \"default\"; Plait's Llama has no scaled rotations";
  EXPECT_EQ(Problem("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}"),
            "\"rope_scaling.rope_type\" is \"linear\"; " + scaled);
  EXPECT_EQ(Problem("\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 5e5}"),
            "\"rope_parameters.rope_type\" is \"llama3\"; " + scaled);
  EXPECT_EQ(Problem("\"rope_parameters\": {\"partial_rotary_factor\": 0.5}"),
            "\"partial_rotary_factor\" is 0.5; expected 1");
  EXPECT_EQ(ConfigFrom("[1").status().message(), "is not a JSON object");
}

// Before memory is taken for a model of those sizes.
TEST(HuggingFaceLlama, HoldsSizesAgainstTheFiles) {
  const std::string folder = Folder("sizes");
  ASSERT_TRUE(SaveHuggingFaceLlama(Drawn(at::kFloat), folder).ok());
  for (const auto& [size, number, problem] :
       {std::tuple(&LlamaOptions::n_layers, std::int64_t{1'000'000'000},
                   "the options ask for 1000000000 layers, but"),
        std::tuple(&LlamaOptions::hidden, std::int64_t{1} << 31, "parameters of 2 x 24 x 2147483648 numbers"),
        std::tuple(&LlamaOptions::vocab_size, std::int64_t{1} << 31,
                   "parameters of 2147483648 x 24 numbers")}) {
    LlamaOptions options = Small();
    options.*size = number;
    std::ofstream(folder + "/config.json") << ConfigText(options);
    const absl::Status status = HuggingFaceLlama::Open(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("sizes/config.json: the options ask for"));
    EXPECT_THAT(status.message(), HasSubstr(problem));
  }
}

TEST(LlamaConfig, TokensThatBeginAndEndTextsComeBack) {
  using hugging_face::SpecialTokens, hugging_face::SpecialTokensFrom;
  const SpecialTokens cases[] = {
      {}, {.begin_of_text = 1, .ends_of_text = {2}}, {.begin_of_text = 1, .ends_of_text = {2, 32000}}};
  for (const SpecialTokens& special : cases) {
    EXPECT_EQ(*SpecialTokensFrom(ConfigText(Small(), special)), special);
  }
  EXPECT_THAT(ConfigText(Small(), {.ends_of_text = {2}}), HasSubstr("\"eos_token_id\": 2,"));
  EXPECT_EQ(*SpecialTokensFrom("{}"), SpecialTokens{});
  const auto problem = [](const std::string& text) {
    return std::string(SpecialTokensFrom(text).status().message());
  };
  EXPECT_EQ(problem(R"({"bos_token_id": "<s>"})"),
            "\"bos_token_id\" is \"<s>\"; expected an integer from 0 to 2^31 - 1, or null");
  for (const std::string value :
       {"-1", "2.0", "\"</s>\"", "[2,null]", "[[2]]", "{\"a\":2}", "2147483648", "true"}) {
    EXPECT_EQ(
        problem("{\"eos_token_id\": " + value + "}"),
        "\"eos_token_id\" is " + value + "; expected an integer from 0 to 2^31 - 1, a list of such, or null");
  }
}

// Of both versions of the file.
TEST(LlamaConfig, ReadsThetaAndDefaults) {
  const LlamaOptions published = {
      .dim = 4096, .n_layers = 32, .n_heads = 32, .n_kv_heads = 32, .hidden = 11008, .norm_eps = 1e-6};
  EXPECT_EQ(ConfigFrom("{\"model_type\": \"llama\", \"num_key_value_heads\": null}")->options, published);
  for (const char* keys : {"\"rope_theta\": 500000.0, \"rope_scaling\": null",
                           "\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}"}) {
    const auto config = ConfigFrom(std::string("{\"model_type\": \"llama\", ") + keys + "}");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->options.rope_theta, 500000);
  }
  EXPECT_TRUE(ConfigFrom("{\"model_type\": \"llama\", \"tie_word_embeddings\": true}")->tied);
}

}  // namespace
}  // namespace plait::llama
