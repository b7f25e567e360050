// Files that we write and read; models/hugging_face/transformers_vit_test.py compares with Transformers.
#include "models/vit/safetensors.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/hugging_face/testing/safetensors_files.h"

namespace plait::vit {
namespace {

using hugging_face::testing::DrawParameters, hugging_face::testing::ExpectReads,
    hugging_face::testing::Folder, hugging_face::testing::ReplaceTensor;
using ::testing::HasSubstr;

VitOptions Small(bool bias) {
  return {.image_size = 8,
          .patch_size = 4,
          .channels = 1,
          .dim = 12,
          .depth = 2,
          .heads = 3,
          .head_dim = 4,
          .mlp_dim = 10,
          .classes = 5,
          .qkv_bias = bias,
          .pool = Pool::kClassToken,
          .norm_eps = 1e-5};
}

Vit Drawn(bool bias, at::ScalarType type) {
  Vit vit(Small(bias), type);
  DrawParameters(vit);
  return vit;
}

struct Case {
  bool bias;
  at::ScalarType type;
};

class RoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(RoundTrip, GivesTheSameBits) {
  const std::string folder = Folder("round_trip");
  const Vit vit = Drawn(GetParam().bias, GetParam().type);
  ASSERT_TRUE(SaveHuggingFaceVit(vit, folder).ok());
  const auto files = HuggingFaceVit::Open(folder);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->options(), vit.options());
  ExpectReads(*files, Vit(files->options(), at::TensorOptions(at::kMeta)), vit);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RoundTrip,
                         ::testing::Values(Case{true, at::kFloat}, Case{false, at::kFloat},
                                           Case{true, at::kBFloat16}, Case{false, at::kDouble}));

TEST(HuggingFaceVit, HasTheNamesOfItsClasses) {
  const std::string folder = Folder("names");
  const Vit vit = Drawn(true, at::kFloat);
  ASSERT_TRUE(SaveHuggingFaceVit(vit, folder, {"cat", "a \"frog\""}).ok());
  const auto files = HuggingFaceVit::Open(folder);
  ASSERT_TRUE(files.ok()) << files.status();
  std::vector<std::string> expected(static_cast<std::size_t>(vit.options().classes));
  expected[0] = "cat";
  expected[1] = "a \"frog\"";
  EXPECT_EQ(files->class_names(), expected);
}

// As of models that other programs write: label2id has one number for each name.
TEST(HuggingFaceVit, OfTwoClassesOfANameTheFirstHasIt) {
  const std::string text = ConfigText(Drawn(true, at::kFloat).options(), {"cat", "frog", "cat"});
  EXPECT_NE(text.find("\"cat\": 0,"), std::string::npos) << text;
  EXPECT_EQ(text.find("\"cat\": 2"), std::string::npos) << text;
}

// Checkpoints keep the names as lines: a break within one would give all later classes the name of another.
TEST(HuggingFaceVit, RefusesNamesWithLineBreaks) {
  const std::string folder = Folder("line_breaks");
  for (const auto& [name, text] : {std::pair("two\nlines", "two\\nlines"), std::pair("frog\r", "frog\\r")}) {
    ASSERT_TRUE(SaveHuggingFaceVit(Drawn(true, at::kFloat), folder, {"cat", name}).ok());
    const absl::Status status = HuggingFaceVit::Open(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), absl::StrCat(folder, "/config.json: \"id2label.1\" is \"", text,
                                             "\"; expected a name without line breaks"));
  }
}

// One tensor replaced, or taken out where it has no data.
absl::Status AfterChange(const std::string& name, const at::Tensor& replacement) {
  const std::string folder = Folder("changed");
  EXPECT_TRUE(SaveHuggingFaceVit(Drawn(true, at::kFloat), folder).ok());
  ReplaceTensor(folder, name, replacement);
  const auto files = HuggingFaceVit::Open(folder);
  if (!files.ok()) return files.status();
  return files->ReadAll(Vit(files->options(), at::kFloat));
}

TEST(HuggingFaceVit, RefusesFilesOfAnotherModel) {
  const std::string key = "vit.encoder.layer.1.attention.attention.key.weight";
  EXPECT_TRUE(AfterChange(key, at::randn({12, 12})).ok());
  EXPECT_EQ(AfterChange(key, {}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(AfterChange(key, {}).message(), HasSubstr("layer.1.attention.attention.key.weight"));
  EXPECT_THAT(AfterChange("vit.encoder.layer.0.output.dense.weight", at::randn({10, 12})).message(),
              HasSubstr("F32 [12, 10]"));
  EXPECT_THAT(AfterChange("vit.encoder.layer.2.output.dense.weight", at::randn({12, 10})).message(),
              HasSubstr("layer.2.output.dense.weight\", which a ViT of 2 layers does not have"));
  EXPECT_TRUE(AfterChange("vit.pooler.dense.weight", at::randn({12, 12})).ok());
}

TEST(HuggingFaceVit, SaysWhatTheLayoutCannotHold) {
  VitOptions options = Small(true);
  EXPECT_TRUE(CheckLayout(options).ok());
  options.head_dim = 5;
  EXPECT_EQ(CheckLayout(options).message(),
            "Hugging Face's ViT has heads of width 12 together; this one has 15");
  EXPECT_EQ(SaveHuggingFaceVit(Vit(options, at::kFloat), Folder("wide")).message(),
            CheckLayout(options).message());
  options = Small(true);
  options.pool = Pool::kMean;
  EXPECT_THAT(std::string(CheckLayout(options).message()), HasSubstr("has a class token"));
}

std::string Problem(const std::string& keys) {
  return std::string(OptionsFromConfig("{\"model_type\": \"vit\", " + keys + "}").status().message());
}

// Before memory is taken for a model of those sizes. An image of 2^31 rows has 2^58 patches.
TEST(HuggingFaceVit, HoldsSizesAgainstTheFiles) {
  const std::string folder = Folder("sizes");
  ASSERT_TRUE(SaveHuggingFaceVit(Drawn(true, at::kFloat), folder).ok());
  for (const auto& [size, number, problem] :
       {std::tuple(&VitOptions::depth, std::int64_t{1'000'000'000},
                   "the options ask for 1000000000 layers, but"),
        std::tuple(&VitOptions::mlp_dim, std::int64_t{1} << 31, "parameters of 2 x 12 x 2147483648 numbers"),
        std::tuple(&VitOptions::image_size, std::int64_t{1} << 31,
                   "parameters of 288230376151711745 x 12 numbers")}) {
    VitOptions options = Small(true);
    options.*size = number;
    std::ofstream(folder + "/config.json") << ConfigText(options);
    const absl::Status status = HuggingFaceVit::Open(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("sizes/config.json: the options ask for"));
    EXPECT_THAT(status.message(), HasSubstr(problem));
  }
  VitOptions options = Small(true);
  options.image_size = std::int64_t{1} << 62;
  EXPECT_EQ(Validate(options).message(), "image_size is 4611686018427387904; expected 1 to 2147483648");
}

TEST(OptionsFromConfig, NamesFunctionsThatTheModelDoesNotHave) {
  EXPECT_EQ(Problem("\"hidden_act\": \"relu\""), "\"hidden_act\" is \"relu\"; expected \"gelu\"");
  EXPECT_EQ(Problem("\"patch_size\": 0"), "\"patch_size\" is 0; expected an integer from 1 to 2147483648");
  EXPECT_EQ(Problem("\"image_size\": 100"),
            "image_size is 100; expected a multiple of patch_size, which is 16");
  EXPECT_EQ(Problem("\"qkv_bias\": 1"), "\"qkv_bias\" is 1; expected true or false");
  EXPECT_EQ(Problem("\"num_attention_heads\": 7"),
            "\"hidden_size\" is 768; expected a multiple of num_attention_heads, which is 7");
  EXPECT_EQ(OptionsFromConfig("{\"model_type\": \"deit\"}").status().message(),
            "\"model_type\" is \"deit\"; expected \"vit\"");
  EXPECT_EQ(OptionsFromConfig("[1").status().message(), "is not a JSON object");
}

TEST(OptionsFromConfig, HasTransformersDefaults) {
  VitOptions expected = *PresetNamed("vit-base");
  expected.norm_eps = 1e-12;
  expected.classes = 2;
  EXPECT_EQ(*OptionsFromConfig("{\"model_type\": \"vit\"}"), expected);
}

TEST(ConfigText, NamesClasses) {
  EXPECT_THAT(ConfigText(Small(true), {"cat", "dog"}), HasSubstr("\"1\": \"dog\",\n    \"2\": \"LABEL_2\""));
}

// As the names of folders may be.
TEST(ConfigText, TakesNamesThatAreNotUtf8) {
  EXPECT_THAT(ConfigText(Small(true), {"caf\xe9", "dog"}),
              HasSubstr("\"0\": \"caf\uFFFD\",\n    \"1\": \"dog\""));
}

}  // namespace
}  // namespace plait::vit
