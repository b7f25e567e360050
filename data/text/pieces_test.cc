#include "data/text/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/text/testing/test_texts.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Pieces(absl::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    pieces.emplace_back(NextPiece(text));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

std::vector<std::int32_t> Lengths(absl::string_view text) {
  std::vector<std::int32_t> lengths;
  while (!text.empty()) {
    lengths.push_back(NextPiece(text).size());
    text.remove_prefix(lengths.back());
  }
  return lengths;
}

// Expected values: the pattern itself in Python's package regex (make_expected_tokens.py).
TEST(NextPiece, AsThePattern) {
  EXPECT_THAT(Pieces("Hello, world! It's 2 o'clock; they'll've DON'T 'S's"),
              ElementsAre("Hello", ",", " world", "!", " It", "'s", " 2", " o", "'", "clock", ";", " they",
                          "'ll", "'ve", " DON", "'", "T", " '", "S", "'s"));
  EXPECT_THAT(
      Pieces("  two  blanks  \n\n\tand tabs \r\n end   "),
      ElementsAre(" ", " two", " ", " blanks", "  \n\n", "\t", "and", " tabs", " \r\n", " end", "   "));
  EXPECT_THAT(Pieces("''''ss 's 't'd're"), ElementsAre("''''", "ss", " '", "s", " '", "t", "'d", "'re"));
  EXPECT_THAT(Pieces("e\u0301 ǅ ʰ ª º _a_b_ 1st 2nd٣rd"),
              ElementsAre("e", "\u0301", " ǅ", " ʰ", " ª", " º", " _", "a", "_", "b", "_", " 1", "st", " 2",
                          "nd", "٣", "rd"));
  EXPECT_THAT(Pieces("a\u00a0b\u2003c\u3000d\u0085e\u1680f\u200bg"),
              ElementsAre("a", "\u00a0", "b", "\u2003", "c", "\u3000", "d", "\u0085", "e", "\u1680", "f",
                          "\u200b", "g"));
}

TEST(NextPiece, RandomTextAsThePattern) {
  const std::vector<std::int32_t> lengths = Lengths(MixedText());
  EXPECT_EQ(lengths.size(), 15127u);
  EXPECT_EQ(CrcOf(lengths), 0xe81c72fbu);
}

// Bytes that are not UTF-8 go with punctuation and never end a run early or are lost.
TEST(NextPiece, BytesThatAreNotUtf8) {
  EXPECT_THAT(Pieces("a\xff\xc3 \x80"
                     "b"),
              ElementsAre("a", "\xff\xc3", " \x80", "b"));
  EXPECT_THAT(Pieces(" \xe2\x82"), ElementsAre(" \xe2\x82"));
}

}  // namespace
}  // namespace plait::data
