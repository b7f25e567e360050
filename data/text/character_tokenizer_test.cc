#include "data/text/character_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CharacterTokenizer, IdsFollowCodePoints) {
  const auto tokenizer = CharacterTokenizer::Of("b\naé中a");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);
  EXPECT_THAT(tokenizer->code_points(), ElementsAre('\n', 'a', 'b', 0xE9, 0x4E2D));
  EXPECT_THAT(*tokenizer->Encode("中ab\n"), ElementsAre(4, 1, 2, 0));
  EXPECT_EQ(*tokenizer->Decode({4, 1, 3, 0}), "中aé\n");
}

TEST(CharacterTokenizer, StoredVocabularyIsTheSame) {
  const auto tokenizer = CharacterTokenizer::Of("hello");
  const auto again = CharacterTokenizer::FromCodePoints(tokenizer->code_points());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->digest(), tokenizer->digest());
  EXPECT_EQ(*again->Encode("hell"), *tokenizer->Encode("hell"));
  EXPECT_NE(CharacterTokenizer::Of("hallo")->digest(), tokenizer->digest());
}

TEST(CharacterTokenizer, Errors) {
  EXPECT_EQ(CharacterTokenizer::Of("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(CharacterTokenizer::Of("ab\xff").status().message()),
              HasSubstr("byte 2 of the text, 0xff"));
  const auto tokenizer = CharacterTokenizer::Of("ab");
  EXPECT_EQ(tokenizer->Encode("abé").status().message(),
            "character 2 of the text, U+00E9, is not among the 2 of the vocabulary");
  for (const std::int32_t id : {-1, 2}) {
    EXPECT_THAT(std::string(tokenizer->Decode({0, id}).status().message()),
                HasSubstr("is unknown: the vocabulary is 0..1"));
  }
  for (const std::vector<std::int32_t>& points :
       std::vector<std::vector<std::int32_t>>{{}, {2, 1}, {1, 1}, {-1}, {0x110000}}) {
    EXPECT_EQ(CharacterTokenizer::FromCodePoints(points).status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace plait::data
