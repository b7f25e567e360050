#include "tools/text_generation/stop_text.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace plait::text_generation {
namespace {

// All output if `text` arrives in pieces of `bytes` bytes.
std::string InPieces(const std::string& text, std::size_t bytes, std::vector<std::string> stops) {
  StopText out(std::move(stops));
  std::string all;
  for (std::size_t at = 0; at < text.size() && !out.stopped(); at += bytes)
    absl::StrAppend(&all, out.Add(text.substr(at, bytes)));
  return absl::StrCat(all, out.Rest());
}

// The text up to the first occurrence of any stop text, however it is cut.
TEST(StopText, EndsBeforeTheFirst) {
  const std::string text = "to be,\nor not\n\nto be \u00e9\u20ac: User: no";
  for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
    EXPECT_EQ(InPieces(text, bytes, {}), text);
    EXPECT_EQ(InPieces(text, bytes, {"\n\n"}), "to be,\nor not");
    EXPECT_EQ(InPieces(text, bytes, {"User:", "or"}), "to be,\n");
    EXPECT_EQ(InPieces(text, bytes, {"\u20ac"}), "to be,\nor not\n\nto be \u00e9");
    EXPECT_EQ(InPieces(text, bytes, {"User: yes", "nonsense"}), text) << "what only begins is no end";
    EXPECT_EQ(InPieces("aaab", bytes, {"aab"}), "a") << "a beginning within a beginning";
  }
}

TEST(StopText, HoldsBackNoMoreThanItMust) {
  StopText text({"\n\nUser"});
  EXPECT_EQ(text.Add("to"), "to");
  EXPECT_EQ(text.Add(" be\n"), " be");
  EXPECT_EQ(text.Add("or"), "\nor");
  EXPECT_EQ(text.Add("\xe2\x82"), "") << "part of a character";
  EXPECT_EQ(text.Add("\xac"), "\u20ac");
  EXPECT_EQ(text.Add("\n\nUs"), "");
  EXPECT_EQ(text.Rest(), "\n\nUs");
  EXPECT_FALSE(text.stopped());
}

}  // namespace
}  // namespace plait::text_generation
