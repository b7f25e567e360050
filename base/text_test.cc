#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace plait::base {
namespace {

using ::testing::ElementsAre;

TEST(Utf8, EveryCharacterComesBack) {
  for (std::int32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(c, text);
    const std::size_t expected = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    ASSERT_EQ(text.size(), expected);
    const CodePoint point = FirstCodePoint(text + "x");
    ASSERT_EQ(point.value, c);
    ASSERT_EQ(point.bytes, static_cast<std::int32_t>(expected));
    // Cut short it is no character.
    if (expected > 1) {
      ASSERT_EQ(FirstCodePoint(absl::string_view(text).substr(0, expected - 1)).value, -1);
    }
  }
}

// The tables of RFC 3629 and of chapter 3.9 of the Unicode Standard.
TEST(Utf8, WhatIsNotValidIsOneByte) {
  for (const absl::string_view text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
                                       "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                       "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x99("}) {
    const CodePoint point = FirstCodePoint(text);
    EXPECT_EQ(point.value, -1);
    EXPECT_EQ(point.bytes, 1);
  }
}

TEST(ValidUtf8, ReplacesInvalidBytesOnly) {
  EXPECT_EQ(ValidUtf8("caf\xe9\nb\tµ"), "caf\xEF\xBF\xBD\nb\tµ");
  EXPECT_EQ(ValidUtf8(""), "");
}

TEST(Printable, ReplacesInvalidBytesAndControlCharacters) {
  EXPECT_EQ(Printable("a\tb\x1b\x7f µ"), "a b   µ");
  EXPECT_EQ(Printable("\xC2\x80"
                      "a\xC2\x9B"
                      "31m\xC2\xA0\xC2\x9F"),
            " a 31m\xC2\xA0 ")
      << "C1 and a space that does not break";
  EXPECT_EQ(Printable("\xff\xC0\xBC<", "!"), "!!!<");
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3), "?", ""), "ab");
  EXPECT_EQ(AsciiOnly("1 µs ü\x1b[2J\n"), "1 us ??[2J\n");
}

TEST(EscapeHtml, MarkupAndBadBytesAreHarmless) {
  EXPECT_EQ(EscapeHtml("<script>\"a\" & 'b'</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;");
  EXPECT_EQ(EscapeHtml("µ \xE2\x82\xAC \xF0\x9F\x98\x80"), "µ \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeHtml("\xff<"), replaced + "&lt;");
  // Overlong "<", a surrogate, a character that is cut short.
  EXPECT_EQ(EscapeHtml("\xC0\xBC"), replaced + replaced);
  EXPECT_EQ(EscapeHtml("\xED\xA0\x80"), replaced + replaced + replaced);
  EXPECT_EQ(EscapeHtml("\xE2\x82"), replaced + replaced);
  EXPECT_EQ(EscapeHtml(absl::string_view("a\0b\x1b", 4)), "a b ");
}

TEST(WrapText, SplitsAtSpacesAndCutsLongWords) {
  EXPECT_THAT(WrapText("", 10), ElementsAre(""));
  EXPECT_THAT(WrapText("abcdef", 3), ElementsAre("abc", "def"));
  EXPECT_THAT(WrapText("äöü äöü", 3), ElementsAre("äöü", "äöü"));
  EXPECT_THAT(WrapText("a bc defghijk l", 5), ElementsAre("a bc", "defgh", "ijk l"));
  EXPECT_THAT(WrapText("one two three", 7, 2), ElementsAre("one two", "  three"));
  EXPECT_THAT(WrapText("one threefour", 7, 2), ElementsAre("one", "  three", "  four"));
  EXPECT_EQ(TextWidth("µs"), 2);
  EXPECT_EQ(TextPrefix("µs", 1), "µ");
}

// The shell's own splitting is the judge.
TEST(ShellCommand, IsReadBackByAShell) {
  const std::vector<std::string> words = {"a b", "it's", "", "$HOME", "x=\"1\"", "plain-1.0/a_b", "*", "\\"};
  const std::string command = "printf '[%s]' " + ShellCommand(words);
  std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(command.c_str(), "r"), pclose);
  std::string output(1000, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), shell.get()));
  EXPECT_EQ(output, "[a b][it's][][$HOME][x=\"1\"][plain-1.0/a_b][*][\\]");
  EXPECT_EQ(ShellCommand({"plain-1.0/a_b", "--x=3"}), "plain-1.0/a_b --x=3");
  EXPECT_EQ(ShellCommand({"p", "", "a'b", "$HOME", "x=1", "~", "a\nb"}),
            "p '' 'a'\\''b' '$HOME' x=1 '~' 'a\nb'");
}

}  // namespace
}  // namespace plait::base
