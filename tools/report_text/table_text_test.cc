#include "tools/report_text/table_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/report_numbers/summary.h"
#include "tools/report_text/number_text.h"

namespace plait::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(NumberText, UnitsSuitTheSize) {
  EXPECT_EQ(Shown(0.00154, "s"), "1.54 ms");
  EXPECT_EQ(Shown(12.5, "s"), "12.5 s");
  EXPECT_EQ(Shown(0.99999, "s"), "1 s");
  EXPECT_EQ(Shown(2.5e-10, "s"), "0.25 ns");
  EXPECT_EQ(Shown(-3e-6, "s"), "-3 µs");
  EXPECT_EQ(Shown(0, "s"), "0 s");
  EXPECT_EQ(Shown(3350528, "bytes"), "3.195 MiB");
  EXPECT_EQ(Shown(12, "bytes"), "12 B");
  EXPECT_EQ(Shown(1023.99, "bytes"), "1 KiB");
}

TEST(NumberText, PlainNumbersHaveFourDigits) {
  EXPECT_EQ(Shown(2152.41), "2152");
  EXPECT_EQ(Shown(0.123456), "0.1235");
  EXPECT_EQ(Shown(41234.5), "41,230");
  EXPECT_EQ(Shown(123456), "123,456") << "whole numbers in full";
  EXPECT_EQ(Shown(1234567), "1,235,000");
  EXPECT_EQ(Shown(-98765.4), "-98,770");
  EXPECT_EQ(Shown(1.5e12), "1.5e+12");
  EXPECT_EQ(Shown(kNaN), "-");
  EXPECT_EQ(Shown(kInf, "s"), "inf");
  EXPECT_EQ(Shown(-kInf), "-inf");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(-123), "-123");
  EXPECT_EQ(Percent(0.7512), "75.1 %");
  EXPECT_EQ(Percent(kNaN), "-");
}

ReportTable Wide() {
  ReportTable table = {
      .title = "Wide", .header = {"metric", "run"}, .rows = {{"dt", "a"}, {"loss", "b"}}, .texts = 2};
  for (int i = 0; i < 12; ++i) {
    table.header.push_back(absl::StrCat("h", i));
    table.rows[0].push_back(absl::StrCat("1234", i));
    table.rows[1].push_back(i < 4 ? "7" : "");
  }
  table.foot = "A sentence that is longer than the lines of a narrow terminal are.";
  return table;
}

TEST(TableText, FitsWhereThereIsRoom) {
  const ReportTable table = {.title = "T", .header = {"metric", "n"}, .rows = {{"dt", "99"}, {"loss", "5"}}};
  EXPECT_EQ(TextTable(table, 80), "T\n  metric   n\n  dt      99\n  loss     5\n");
}

TEST(TableText, GoesOnBelowAndLosesNothing) {
  for (const int columns : {20, 25, 40, 64, 100}) {
    const std::string text = TextTable(Wide(), columns);
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(TextWidth(line), columns) << line;
      EXPECT_FALSE(absl::EndsWith(line, " ")) << line;
    }
    for (int i = 0; i < 12; ++i) EXPECT_THAT(text, HasSubstr(absl::StrCat("1234", i)));
  }
  // Each part names metric and run again; a row without entries in a part is left out of it.
  const std::vector<std::string> parts = absl::StrSplit(TextTable(Wide(), 40), "\n\n");
  ASSERT_GT(parts.size(), 2u);
  for (const std::string& part : parts) EXPECT_THAT(part, HasSubstr("dt      a"));
  EXPECT_THAT(parts.back(), Not(HasSubstr("loss")));
}

TEST(TableText, LongTextsWrap) {
  const ReportTable table = {.title = "T",
                             .header = {"", "x"},
                             .rows = {{"command", "a_very_long_word_without_any_blank and others"}},
                             .texts = 1,
                             .last_texts = 1};
  EXPECT_EQ(
      TextTable(table, 30),
      "T\n           x\n  command  a_very_long_word_wi\n           thout_any_blank and\n           others\n");
  EXPECT_THAT(WrappedLines("", 10), ElementsAre(""));
  EXPECT_THAT(WrappedLines("abcdef", 3), ElementsAre("abc", "def"));
  EXPECT_THAT(WrappedLines("äöü äöü", 3), ElementsAre("äöü", "äöü"));
}

TEST(TableText, PlainTerminalsAndControlCharacters) {
  EXPECT_EQ(AsciiOnly("1 µs ü\x1b[2J\n"), "1 us ??[2J\n");
  EXPECT_EQ(WithoutControl("a\tb\x1b\x7f"), "a?b??");
  const ReportTable table = {.title = "T", .header = {"a"}, .rows = {{"x\ny\x1b[31m"}}};
  EXPECT_EQ(TextTable(table, 40), "T\n  a\n  x?y?[31m\n");
}

TEST(TableText, Markdown) {
  const ReportTable table = {.title = "T",
                             .header = {"metric", "n", "remarks"},
                             .rows = {{"a|b", "1", "<i>\n"}},
                             .last_texts = 1,
                             .foot = "F."};
  EXPECT_EQ(MarkdownTable(table),
            "## T\n\n| metric | n | remarks |\n| --- | ---: | --- |\n| a\\|b | 1 | &lt;i>? |\n\nF.\n");
}

}  // namespace
}  // namespace plait::report
