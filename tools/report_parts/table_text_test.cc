#include "tools/report_parts/table_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "tools/report_parts/report_tables.h"

namespace plait::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

// A rank that never recorded a time is shown last, and is not the one that others are compared with.
TEST(RankTable, ARankWithoutTimesIsNotTheFastest) {
  RunNumbers run;
  run.ranks = {{.metric = "dt_per_rank",
                .units = "s",
                .slowest_is = SlowestIs::kLargest,
                .medians = {std::nan(""), 2, 4},
                .slowest_shares = {0, 0, 1}}};
  const ReportTable table = RankTable({run}, /*most_ranks=*/8);
  ASSERT_EQ(table.rows.size(), 3);
  std::vector<std::string> text;
  for (const auto& row : table.rows) text.push_back(absl::StrJoin(row, " "));
  EXPECT_THAT(text[0], HasSubstr(" 2 4 s 2 "));
  EXPECT_THAT(text[1], HasSubstr(" 1 2 s 1 "));
  EXPECT_THAT(text[2], HasSubstr("0 "));
}

TEST(TableText, FitsWhereThereIsRoom) {
  const ReportTable table = {.title = "T", .header = {"metric", "n"}, .rows = {{"dt", "99"}, {"loss", "5"}}};
  EXPECT_EQ(TextTable(table, 80), "T\n  metric   n\n  dt      99\n  loss     5\n");
}

TEST(TableText, GoesOnBelowAndLosesNothing) {
  for (const int columns : {20, 25, 40, 64, 100}) {
    const std::string text = TextTable(Wide(), columns);
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(base::TextWidth(line), columns) << line;
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
}

TEST(TableText, ControlCharactersAreReplaced) {
  const ReportTable table = {.title = "T", .header = {"a"}, .rows = {{"x\ny\x1b[31m"}}};
  EXPECT_EQ(TextTable(table, 40), "T\n  a\n  x?y?[31m\n");
}

TEST(TableText, Markdown) {
  const ReportTable table = {.title = "T",
                             .header = {"metric", "n", "remarks"},
                             .rows = {{"a|b", "1", "<i>\n"}},
                             .last_texts = 1,
                             .foot = "F: <b>\x1b`."};
  EXPECT_EQ(
      MarkdownTable(table),
      "## T\n\n| metric | n | remarks |\n| --- | ---: | --- |\n| a\\|b | 1 | &lt;i>? |\n\nF: &lt;b>?\\`.\n");
}

}  // namespace
}  // namespace plait::report
