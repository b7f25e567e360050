// Model options and tokenizer survive saving and loading a checkpoint.
#include "tools/text_training/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/communicator.h"
#include "data/text/character_tokenizer.h"
#include "data/text/tokenizer_folder.h"

namespace plait::text_training {
namespace {

constexpr char kText[] = "To be,\nor not to be: \xc3\xa9\t";

SavedModel Model() {
  const data::CharacterTokenizer tokenizer = *data::CharacterTokenizer::Of(kText);
  return {.options = gpt::GptOptions{.vocab_size = tokenizer.vocabulary_size(),
                                     .block_size = 16,
                                     .n_layer = 2,
                                     .n_head = 2,
                                     .n_embd = 8,
                                     .dropout = 0.1,
                                     .bias = false,
                                     .gelu = gpt::Gelu::kTanh},
          .tokenizer = "characters",
          .tokenizer_digest = tokenizer.digest(),
          .code_points = tokenizer.code_points(),
          .special = {.begin_of_text = 1, .ends_of_text = {0, 32000}}};
}

parallel::CheckpointState State(const SavedModel& model = Model()) {
  parallel::CheckpointState state;
  KeepModel(model, state);
  return state;
}

absl::StatusOr<parallel::Checkpoint> Save(const parallel::CheckpointState& state, const std::string& name) {
  const std::string root = std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
  // Room for every model here: three tensors of a thousand numbers.
  const std::vector<float> values(1000, 1);
  std::vector<parallel::TensorPiece> pieces;
  for (const char* tensor : {"u", "v", "w"}) {
    pieces.push_back({.tensor = {.group = "model", .name = tensor, .shape = {1000}},
                      .begin = 0,
                      .end = 1000,
                      .data = values.data()});
  }
  const auto saved = parallel::SaveCheckpoint(comm::Communicator::Self(), root, 7, pieces, state);
  EXPECT_TRUE(saved.ok()) << saved.status();
  if (!saved.ok()) return saved.status();
  return parallel::Checkpoint::Open(saved->folder);
}

TEST(SavedModelTest, ComesBack) {
  absl::StatusOr<parallel::Checkpoint> checkpoint = Save(State(), "kept");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const absl::StatusOr<SavedModel> model = SavedModelOf(*checkpoint);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->options, Model().options);
  EXPECT_EQ(model->code_points, Model().code_points);
  EXPECT_EQ(model->special, Model().special);
  const auto tokenizer = TokenizerOf(*model, "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Decode(*(*tokenizer)->Encode(kText)).value_or(""), kText);
}

TEST(SavedModelTest, LlamaComesBack) {
  SavedModel model = Model();
  model.options = llama::LlamaOptions{.vocab_size = 17,
                                      .max_seq_len = 9,
                                      .dim = 24,
                                      .n_layers = 3,
                                      .n_heads = 6,
                                      .n_kv_heads = 2,
                                      .hidden = 20,
                                      .norm_eps = 3e-6,
                                      .rope_theta = 12345.678};
  absl::StatusOr<parallel::Checkpoint> checkpoint = Save(State(model), "kept_llama");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const absl::StatusOr<SavedModel> found = SavedModelOf(*checkpoint);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->options, model.options);
}

// A checkpoint of an earlier version.
TEST(SavedModelTest, WithoutAKindItIsAGpt) {
  parallel::CheckpointState state = State();
  EXPECT_EQ(state.texts.erase("model.kind"), 1u);
  EXPECT_EQ(state.texts.erase("tokenizer.ends_of_text"), 1u);
  state.integers["tokenizer.end_of_text"] = 9;
  absl::StatusOr<parallel::Checkpoint> checkpoint = Save(state, "earlier");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const absl::StatusOr<SavedModel> model = SavedModelOf(*checkpoint);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->options, Model().options);
  EXPECT_THAT(model->special.ends_of_text, testing::ElementsAre(9));
}

TEST(SpecialTokensTest, TheTokenizersAndWhatItDoesNotName) {
  const hugging_face::SpecialTokens files = {.begin_of_text = 7, .ends_of_text = {5, 2}};
  EXPECT_EQ(SpecialTokensOf(nullptr, files), files);
  const data::CharacterTokenizer characters = *data::CharacterTokenizer::Of(kText);
  EXPECT_EQ(SpecialTokensOf(&characters, files), files);
  const auto pieces = data::LoadTokenizer("data/text/testing");  // 1 begins a text, 2 ends one
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_EQ(SpecialTokensOf(pieces->get(), files),
            (hugging_face::SpecialTokens{.begin_of_text = 1, .ends_of_text = {5, 2}}));
  EXPECT_EQ(SpecialTokensOf(pieces->get(), {.ends_of_text = {5}}),
            (hugging_face::SpecialTokens{.begin_of_text = 1, .ends_of_text = {2}}));
}

TEST(SavedModelTest, RandomTokensHaveNoTokenizer) {
  SavedModel model = Model();
  model.tokenizer = "random";
  EXPECT_EQ(TokenizerOf(model, "").status().message(),
            "the model was trained on tokens without a tokenizer: it cannot generate text");
}

TEST(SavedModelTest, AnotherVocabularyIsFound) {
  SavedModel model = Model();
  model.code_points.pop_back();
  EXPECT_EQ(TokenizerOf(model, "").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SavedModelTest, AnotherProgramsCheckpoint) {
  absl::StatusOr<parallel::Checkpoint> checkpoint =
      Save({.texts = {}, .integers = {{"step", 1}}, .rank_state = {}}, "other");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(std::string(SavedModelOf(*checkpoint).status().message()),
              testing::HasSubstr("model.vocab_size"));
}

// Rejected before such a model is allocated.
TEST(SavedModelTest, SizesThatTheTensorsDoNotHave) {
  for (const auto& [name, number] : {std::pair<const char*, std::int64_t>("model.n_layer", 1'000'000'000),
                                     {"model.n_layer", 4},
                                     {"model.n_embd", std::int64_t{1} << 62},
                                     {"model.vocab_size", 1'000'000},
                                     {"model.gelu_tanh", 2},
                                     {"model.bias", 256}}) {
    parallel::CheckpointState state = State();
    state.integers[name] = number;
    absl::StatusOr<parallel::Checkpoint> checkpoint = Save(state, absl::StrCat("too_large_", name, number));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const absl::Status status = SavedModelOf(*checkpoint).status();
    EXPECT_FALSE(status.ok()) << name << " " << number;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(checkpoint->folder()));
  }
}

TEST(SavedModelTest, DamagedNumbers) {
  for (const auto& [name, text] : {std::pair("tokenizer.code_points", "10 x"),
                                   {"tokenizer.ends_of_text", "2,3"},
                                   {"model.dropout", "0x"}}) {
    parallel::CheckpointState state = State();
    state.texts[name] = text;
    absl::StatusOr<parallel::Checkpoint> checkpoint = Save(state, absl::StrCat("damaged_", name));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const absl::Status status = SavedModelOf(*checkpoint).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace plait::text_training
