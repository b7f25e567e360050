// A model that the library trains here, held against the library's own decoding and against the bytes of a text.
#include "data/text/sentence_piece_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/text/testing/sentence_piece_files.h"

namespace plait::data {
namespace {

const std::string& Folder() {
  static const std::string folder = [] {
    const std::string made = ::testing::TempDir() + "/sentence_piece";
    std::filesystem::create_directories(made);
    testing::WriteSentencePieceModel(made);
    return made;
  }();
  return folder;
}

TEST(SentencePieceTokenizer, TextsComeBack) {
  const auto tokenizer = SentencePieceTokenizer::Load(Folder());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const std::string text : {"the cat sat on the mat", "a", "zebra \xC3\xA9\xF0\x9F\x98\x80 !", ""}) {
    const std::vector<std::int32_t> ids = *tokenizer->Encode(text);
    ASSERT_FALSE(ids.empty());
    EXPECT_EQ(ids[0], 1) << "the token that begins a text";
    EXPECT_EQ(std::vector<std::int32_t>(ids.begin() + 1, ids.end()), testing::IdsByLibrary(Folder(), text))
        << text;
    EXPECT_EQ(*tokenizer->Decode(ids), text);
    // One by one, as a program writes them that has no more yet.
    std::string streamed;
    for (const std::int32_t id : ids) streamed += *tokenizer->Decode({id});
    EXPECT_EQ(streamed, text.empty() ? "" : " " + text);
  }
}

TEST(SentencePieceTokenizer, HasTheModelsVocabulary) {
  const auto tokenizer = SentencePieceTokenizer::Load(Folder());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->vocabulary_size(), testing::kSentencePieces);
  EXPECT_EQ(tokenizer->Decode({testing::kSentencePieces}).status().message(),
            "token 300 is unknown: the vocabulary is 0..299");
  EXPECT_EQ(tokenizer->Decode({-1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tokenizer->digest(), SentencePieceTokenizer::Load(Folder())->digest());
}

TEST(SentencePieceTokenizer, BadFiles) {
  const std::string folder = ::testing::TempDir() + "/damaged";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(SentencePieceTokenizer::Load(folder).status().code(), absl::StatusCode::kNotFound);
  for (const std::string bytes : {"", "no model", "\x0A\xFF\xFF\xFF\xFF\x0F"}) {
    std::ofstream(folder + "/tokenizer.model", std::ios::binary) << bytes;
    const absl::Status status = SentencePieceTokenizer::Load(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find(folder + "/tokenizer.model: damaged, or no model of SentencePiece"),
              std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace plait::data
