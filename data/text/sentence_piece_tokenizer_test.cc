// Held against ids of the SentencePiece library, which make_sentence_pieces.py computed.
#include "data/text/sentence_piece_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/hdf5/atomic_file.h"
#include "data/text/sentence_piece_model.pb.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

constexpr char kFolder[] = "data/text/testing";

SentencePieceTokenizer Loaded() { return *SentencePieceTokenizer::Load(kFolder); }

file::SentencePieceModel Model() {
  file::SentencePieceModel model;
  EXPECT_TRUE(model.ParseFromString(*ReadWholeFile(std::string(kFolder) + "/tokenizer.model")));
  return model;
}

// Changed as the script's function of this name changes it.
file::SentencePieceModel Variant(const std::string& name) {
  file::SentencePieceModel model = Model();
  if (name == "squeezed") model.mutable_normalization()->set_remove_extra_spaces(true);
  if (name == "without prefix") model.mutable_normalization()->set_add_prefix(false);
  if (name == "without bytes") model.mutable_training()->set_byte_fallback(false);
  if (name == "joined") {  // no merge with a user-defined piece, even where the model has its result
    model.mutable_pieces(300)->set_piece(
        "\xE2\x96\x81"
        "a<user>");
    model.mutable_pieces(301)->set_piece("<use<user>");
  }
  for (int id = 0; id < model.pieces_size() && name == "within words"; ++id) {
    const std::string space = "\xE2\x96\x81", piece = model.pieces(id).piece();
    std::size_t first = 0;
    while (piece.compare(first, space.size(), space) == 0) first += space.size();
    if (piece.find(space, first) != piece.npos) {
      model.mutable_pieces(id)->set_piece("\xEE\x80\x80" + std::to_string(id));
    }
  }
  for (file::SentencePiece& piece : *model.mutable_pieces()) {
    if (name == "equal scores") piece.set_score(0);
    if (name == "without bytes" && piece.type() == file::SentencePiece::BYTE)
      piece.set_type(file::SentencePiece::CONTROL);
  }
  return model;
}

absl::Status StatusOf(const file::SentencePieceModel& model) {
  return SentencePieceTokenizer::Parse(model.SerializeAsString(), "FILE").status();
}

TEST(SentencePieceTokenizer, IdsAreTheLibrarys) {
  const auto cases = nlohmann::json::parse(*ReadWholeFile(std::string(kFolder) + "/sentence_piece_ids.json"));
  ASSERT_EQ(cases.size(), 140u);
  for (const nlohmann::json& expected : cases) {
    const auto tokenizer = SentencePieceTokenizer::Parse(Variant(expected["model"]).SerializeAsString());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    std::vector<std::int32_t> ids = expected["ids"];
    ids.insert(ids.begin(), 1);  // begins a text
    EXPECT_EQ(*tokenizer->Encode(expected["text"].get<std::string>()), ids) << expected;
  }
}

TEST(SentencePieceTokenizer, TextsComeBack) {
  const SentencePieceTokenizer tokenizer = Loaded();
  for (const std::string text :
       {"the cat sat on the mat", "a", " a  ", "zebra \xC3\xA9\xF0\x9F\x98\x80 !\n", "<user>", ""}) {
    const std::vector<std::int32_t> ids = *tokenizer.Encode(text);
    EXPECT_EQ(*tokenizer.Decode(ids), text);
    // One by one, as a program writes them that has no more yet.
    std::string streamed;
    for (const std::int32_t id : ids) streamed += *tokenizer.Decode({id});
    EXPECT_EQ(streamed, text.empty() ? "" : " " + text);
  }
  const auto as_given = SentencePieceTokenizer::Parse(Variant("without prefix").SerializeAsString());
  EXPECT_EQ(*as_given->Decode(*as_given->Encode(" a")), " a");
}

TEST(SentencePieceTokenizer, BytesThatAreNotUtf8) {
  const SentencePieceTokenizer tokenizer = Loaded();
  const std::string replaced =
      "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
      "b";
  EXPECT_EQ(*tokenizer.Encode("a\xFF\xC0\x80"
                              "b"),
            *tokenizer.Encode(replaced));
}

TEST(SentencePieceTokenizer, HasTheModelsVocabulary) {
  const SentencePieceTokenizer tokenizer = Loaded();
  EXPECT_EQ(tokenizer.vocabulary_size(), 400);
  EXPECT_EQ(tokenizer.Decode({400}).status().message(), "token 400 is unknown: the vocabulary is 0..399");
  EXPECT_EQ(tokenizer.Decode({-1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tokenizer.digest(), Loaded().digest());
  EXPECT_NE(tokenizer.digest(),
            SentencePieceTokenizer::Parse(Variant("squeezed").SerializeAsString())->digest());
}

TEST(SentencePieceTokenizer, WithoutATokenThatBeginsATextThereIsNone) {
  file::SentencePieceModel model = Model();
  model.mutable_training()->set_begin_piece("<none>");
  EXPECT_TRUE(SentencePieceTokenizer::Parse(model.SerializeAsString())->Encode("")->empty());
}

TEST(SentencePieceTokenizer, BeginsTextsUnlessTheSettingsSayOtherwise) {
  const std::string folder = ::testing::TempDir() + "/settings", settings = folder + "/tokenizer_config.json";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(std::string(kFolder) + "/tokenizer.model", folder + "/tokenizer.model",
                             std::filesystem::copy_options::overwrite_existing);
  const std::vector<std::int32_t> ids = *Loaded().Encode("the cat");
  ASSERT_EQ(ids.front(), 1);
  for (const char* text :
       {"{}", R"({"add_bos_token": true})", R"({"add_bos_token": null})", R"({"add_prefix_space": null})",
        R"({"add_prefix_space": true})", R"({"add_eos_token": false})"}) {
    std::ofstream(settings) << text;
    const auto tokenizer = SentencePieceTokenizer::Load(folder);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(*tokenizer->Encode("the cat"), ids);
    EXPECT_EQ(tokenizer->digest(), Loaded().digest());
  }
  std::ofstream(settings) << R"({"add_bos_token": false, "bos_token": "<s>"})";
  const auto tokenizer = SentencePieceTokenizer::Load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*tokenizer->Encode("the cat"), std::vector<std::int32_t>(ids.begin() + 1, ids.end()));
  EXPECT_EQ(tokenizer->begin_of_text(), std::nullopt);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_NE(tokenizer->digest(), Loaded().digest());
  std::ofstream(settings) << R"({"add_bos_token": "no"})";
  EXPECT_EQ(SentencePieceTokenizer::Load(folder).status(),
            absl::InvalidArgumentError(settings + ": \"add_bos_token\" is \"no\"; expected true or false"));
  std::ofstream(settings) << R"({"add_prefix_space": false})";
  EXPECT_EQ(
      SentencePieceTokenizer::Load(folder).status(),
      absl::InvalidArgumentError(settings + ": \"add_prefix_space\" is false; expected true: texts would "
                                            "get other ids than the model's"));
  std::ofstream(settings) << R"({"add_eos_token": true})";
  EXPECT_EQ(SentencePieceTokenizer::Load(folder).status(),
            absl::InvalidArgumentError(settings + ": \"add_eos_token\" is true; expected false: texts would "
                                                  "get other ids than the model's"));
  std::ofstream(settings) << "{";
  EXPECT_EQ(SentencePieceTokenizer::Load(folder).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SentencePieceTokenizer, BadFiles) {
  const std::string folder = ::testing::TempDir() + "/damaged";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(SentencePieceTokenizer::Load(folder).status().code(), absl::StatusCode::kNotFound);
  for (const std::string bytes : {"", "no model", "\x0A\xFF\xFF\xFF\xFF\x0F"}) {
    std::ofstream(folder + "/tokenizer.model", std::ios::binary) << bytes;
    EXPECT_EQ(SentencePieceTokenizer::Load(folder).status(),
              absl::DataLossError(
                  folder + "/tokenizer.model: damaged, or not a SentencePiece model: expected " +
                  "pieces in a protobuf message, found " + std::to_string(bytes.size()) + " bytes without"));
  }
}

TEST(SentencePieceTokenizer, BadPieces) {
  using Change = void (*)(file::SentencePieceModel&);
  const std::pair<Change, std::string> cases[] = {
      {[](auto& m) { m.mutable_pieces(300)->clear_piece(); },
       "piece 300, \"\", is empty, given twice or without a score"},
      {[](auto& m) { m.mutable_pieces(300)->set_piece("a"); }, ""},
      {[](auto& m) { m.mutable_pieces(300)->set_score(std::numeric_limits<float>::quiet_NaN()); }, ""},
      {[](auto& m) { m.mutable_pieces(6)->set_piece("<0x"); },
       "piece 6 is byte \"<0x\"; expected \"<0x00>\" to \"<0xFF>\""},
      {[](auto& m) { m.mutable_pieces(6)->set_type(file::SentencePiece::NORMAL); }, "byte 0 has no piece"},
      {[](auto& m) { m.mutable_training()->clear_byte_fallback(); },
       "piece 6 is byte \"<0x00>\"; expected none in a model without bytes"},
      {[](auto& m) { m.mutable_pieces(0)->set_type(file::SentencePiece::NORMAL); }, "has no unknown piece"},
      {[](auto& m) { m.mutable_pieces(300)->set_type(file::SentencePiece::UNKNOWN); },
       "has a second unknown piece"},
  };
  for (const auto& [change, what] : cases) {
    file::SentencePieceModel model = Model();
    change(model);
    const absl::Status status = StatusOf(model);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("FILE: damaged, or not a SentencePiece model: "), std::string::npos)
        << status;
    EXPECT_NE(status.message().find(what), std::string::npos) << status;
  }
}

TEST(SentencePieceTokenizer, OtherModelsAreRefused) {
  file::SentencePieceModel model = Model();
  model.mutable_training()->set_model_type(file::SentencePieceTraining::UNIGRAM);
  EXPECT_EQ(StatusOf(model),
            absl::InvalidArgumentError("FILE: a unigram model; expected byte pairs, as Llama's"));
  model = Model();
  model.mutable_normalization()->set_name("nmt_nfkc");
  model.mutable_normalization()->set_rules("x");
  EXPECT_EQ(StatusOf(model), absl::InvalidArgumentError(
                                 "FILE: changes characters of texts (normalization \"nmt_nfkc\"); expected "
                                 "\"identity\", as Llama's"));
  model = Model();
  model.mutable_normalization()->set_escape_spaces(false);
  EXPECT_EQ(StatusOf(model),
            absl::InvalidArgumentError("FILE: spaces are kept, or end words; expected U+2581 "
                                       "before words, as Llama's"));
  model = Model();
  model.mutable_pieces(300)->set_type(file::SentencePiece::UNUSED);
  EXPECT_EQ(StatusOf(model).code(), absl::StatusCode::kInvalidArgument);
  model = Variant("squeezed");
  model.mutable_pieces(300)->set_type(file::SentencePiece::USER_DEFINED);
  model.mutable_pieces(300)->set_piece("\xE2\x96\x81\xE2\x96\x81x");
  EXPECT_EQ(StatusOf(model), absl::InvalidArgumentError(
                                 "FILE: piece 300, \"\xE2\x96\x81\xE2\x96\x81x\", has spaces that the model "
                                 "removes from texts (remove_extra_whitespaces)"));
}

// Cuts and flipped bytes of the small model: an error, or a model that encodes and decodes.
TEST(SentencePieceTokenizer, DamageNeverCrashes) {
  const std::string whole = Model().SerializeAsString();
  for (std::size_t at = 0; at < whole.size(); at += at < 1000 ? 1 : 7) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(~flipped[at]);
    for (const std::string& bytes : {whole.substr(0, at), flipped}) {
      const auto tokenizer = SentencePieceTokenizer::Parse(bytes);
      if (tokenizer.ok()) {
        EXPECT_TRUE(tokenizer->Decode(*tokenizer->Encode(" the caaat\n")).ok());
      } else {
        EXPECT_EQ(tokenizer.status().message().find('\n'), std::string::npos) << tokenizer.status();
      }
    }
  }
}

}  // namespace
}  // namespace plait::data
