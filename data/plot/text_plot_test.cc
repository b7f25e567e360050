// What stands in the text, read back cell by cell.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data/plot/plot.h"

namespace plait::data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> Numbers(int from, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(from + i);
  return values;
}

Plot PlotOf(std::vector<double> y) {
  Plot plot = {.name = "dt", .title = "train/dt [2024-07-17-073537]", .y_label = "dt", .unit = "s"};
  plot.series = {{"dt", Numbers(1, static_cast<int>(y.size())), std::move(y)}};
  return plot;
}

std::string Text(const Plot& plot, const TextStyle& style = {}) {
  const absl::StatusOr<std::string> text = RenderText(plot, style);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  return lines;
}

std::vector<std::string> Letters(const std::string& line) {
  std::vector<std::string> letters;
  for (const char c : line) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) {
      letters.back() += c;
    } else {
      letters.emplace_back(1, c);
    }
  }
  return letters;
}

// Quadrants by their names in Unicode: lower left 1, lower right 2, upper left 4, upper right 8. In ASCII, thirds:
// lower 1, middle 2, upper 4; "." and "'" may stand for the middle one too.
int LitBits(const std::string& letter) {
  static const std::map<std::string, int> kBits = {
      {" ", 0},  {"▖", 1},  {"▗", 2}, {"▘", 4}, {"▝", 8}, {"▄", 3},  {"▀", 12},
      {"▌", 5},  {"▐", 10}, {"▚", 6}, {"▞", 9}, {"▙", 7}, {"▟", 11}, {"▛", 13},
      {"▜", 14}, {"█", 15}, {".", 1}, {"-", 2}, {"'", 4}, {":", 5},  {"|", 7}};
  const auto found = kBits.find(letter);
  EXPECT_NE(found, kBits.end()) << "no part of a cell: " << letter;
  return found == kBits.end() ? 0 : found->second;
}

// The inside of the frame.
struct Frame {
  std::vector<std::string> top, bottom;
  std::vector<std::vector<std::string>> rows;  // from the top
  std::vector<std::string> labels;             // of each row
  int cell_columns = 2, cell_rows = 2;         // pixels per character

  int width() const { return static_cast<int>(top.size()); }
  int height() const { return static_cast<int>(rows.size()); }
  // Lit pixels; x from the left, y from the bottom.
  bool Lit(int x, int y) const {
    const int bits = LitBits(rows[height() - 1 - y / cell_rows][x / cell_columns]);
    return (bits >> (y % cell_rows * cell_columns + x % cell_columns)) & 1;
  }
};

std::vector<std::string> Inside(const std::string& line, int left) {
  const std::vector<std::string> letters = Letters(line);
  return {letters.begin() + left, letters.end() - 1};
}

Frame FrameOf(const std::string& text) {
  Frame frame;
  const bool utf8 = absl::StrContains(text, "┌");
  if (!utf8) {
    frame.cell_columns = 1;
    frame.cell_rows = 3;
  }
  const std::vector<std::string> lines = Lines(text);
  const auto is_border = [utf8](const std::string& line) {
    return utf8 ? absl::StrContains(line, "┌") || absl::StrContains(line, "└") : absl::EndsWith(line, "+");
  };
  const auto top = std::find_if(lines.begin(), lines.end(), is_border);
  const int left = static_cast<int>(top->find(utf8 ? "┌" : "+")) + 1;
  frame.top = Inside(*top, left);
  for (auto line = top + 1; line != lines.end(); ++line) {
    if (is_border(*line)) {
      frame.bottom = Inside(*line, left);
      break;
    }
    frame.rows.push_back(Inside(*line, left));
    frame.labels.push_back(line->substr(0, left - 1));
  }
  return frame;
}

// y = x from corner to corner: in every column of pixels, what is lit is where the line is. Positions are rounded to
// pixels, so both ends are exact and the rest is off by at most one.
TEST(Text, DrawsTheCurveWhereItsValuesAre) {
  Plot plot = PlotOf(Numbers(0, 30));
  plot.robust = false;
  for (const bool utf8 : {true, false}) {
    SCOPED_TRACE(utf8 ? "UTF-8" : "ASCII");
    const Frame frame = FrameOf(Text(plot, {.columns = 60, .rows = 26, .utf8 = utf8}));
    const int columns = frame.cell_columns * frame.width(), rows = frame.cell_rows * frame.height();
    for (int x = 0; x < columns; ++x) {
      // The axis: [0, 29] with a margin of 5 % above, and none below 0.
      const double y = 29.0 * x / (columns - 1) / (29 * 1.05) * (rows - 1);
      int lit = 0;
      for (int row = 0; row < rows; ++row) {
        if (!frame.Lit(x, row)) continue;
        ++lit;
        EXPECT_NEAR(row, y, 1.01) << "column " << x;
      }
      EXPECT_GT(lit, 0) << "column " << x;
    }
  }
}

// Ticks stand in the row of their value.
TEST(Text, LabelsRowsWithTheirValues) {
  Plot plot = PlotOf({0, 10});
  const Frame frame = FrameOf(Text(plot));
  for (int row = 0; row < frame.height(); ++row) {
    const std::string& label = frame.labels[frame.height() - 1 - row];
    if (label.find_first_not_of(' ') == std::string::npos) continue;
    const double position = std::strtod(label.c_str(), nullptr) / 10.5;  // the axis is [0, 10.5]
    EXPECT_NEAR(row, position * frame.height(), 1) << label;
  }
}

std::vector<double> SeedTimes() {
  std::vector<double> dt;
  for (int i = 0; i < 99; ++i) dt.push_back(0.0015 + 0.0001 * (i % 7));
  dt[98] = 0.247;
  return dt;
}

TEST(Text, SaysWhatItClipsAndMarksIt) {
  std::vector<double> dt = SeedTimes();
  std::string text = Text(PlotOf(dt));
  EXPECT_THAT(text, HasSubstr("\n1 of 99 values above 2.13 ms is not shown: 247 ms at iter 99\n"));
  const Frame frame = FrameOf(text);
  EXPECT_EQ(frame.top.back(), "▲");
  EXPECT_EQ(std::count(frame.top.begin(), frame.top.end(), "▲"), 1);
  EXPECT_THAT(text, HasSubstr("\ndt\n"));

  std::vector<double> many(1000, 0);
  for (int i = 0; i < 1000; ++i) many[i] = i % 10;
  many[10] = many[20] = -400;
  many[30] = -500;
  many[40] = 90;
  many[50] = 1e6;
  text = Text(PlotOf(many));
  EXPECT_THAT(text,
              HasSubstr("2 of 1,000 values above 9.45 s are not shown; the largest is 1e6 s at iter 51\n"));
  EXPECT_THAT(text,
              HasSubstr("3 of 1,000 values below 0 s are not shown; the smallest is -500 s at iter 31\n"));
}

TEST(Text, NothingClippedNothingSaid) {
  EXPECT_THAT(Text(PlotOf({1, 2, 3, 1000})), Not(HasSubstr("not shown")));
}

TEST(Text, MarksNanAndInfinityAndLeavesGaps) {
  std::vector<double> y(101, 1);
  for (int i = 40; i <= 60; ++i) y[i] = kNan;
  y[80] = kInfinity;
  y[90] = -kInfinity;
  const std::string text = Text(PlotOf(y));
  EXPECT_THAT(text, HasSubstr("21 of 101 values are NaN, the first at iter 41\n"));
  EXPECT_THAT(text, HasSubstr("2 of 101 values are infinite, the first at iter 81\n"));
  const Frame frame = FrameOf(text);
  // Column of index i: a position of i / 100.
  const auto column = [&](double i) { return static_cast<int>(i / 100 * (2 * frame.width() - 1) + 0.5) / 2; };
  for (int c = 0; c < frame.width(); ++c) {
    bool lit = false;
    for (const auto& row : frame.rows) lit = lit || row[c] != " ";
    if (c > column(39) && c < column(61)) {
      EXPECT_FALSE(lit) << "column " << c;
    }
    if (c < column(39) || (c > column(61) && c < column(79))) {
      EXPECT_TRUE(lit) << "column " << c;
    }
    EXPECT_EQ(frame.bottom[c] == "×", c >= column(40) && c <= column(60)) << "column " << c;
  }
  EXPECT_EQ(frame.top[column(80)], "▲");
  EXPECT_EQ(frame.bottom[column(90)], "▼");
}

TEST(Text, KeepsEveryPointBetweenGapsVisible) {
  std::vector<double> y(50, kNan);
  y[25] = 3;
  const Frame frame = FrameOf(Text(PlotOf(y)));
  int lit = 0;
  for (const auto& row : frame.rows)
    lit += static_cast<int>(std::count_if(row.begin(), row.end(), [](auto& c) { return c != " "; }));
  EXPECT_EQ(lit, 1);
}

TEST(Text, KeepsTheExtremesOfAMillionValues) {
  std::vector<double> y(1000000);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(static_cast<double>(i) * 1e-3) * 0.1;
  y[333333] = 1;
  y[777777] = -1;
  Plot plot = PlotOf(y);
  plot.robust = false;
  const Frame frame = FrameOf(Text(plot));
  const auto lit = [&](int row, double x) {
    return frame.rows[row][static_cast<int>(x * (2 * frame.width() - 1) + 0.5) / 2] != " ";
  };
  // The axis is [-1.1, 1.1]: both stand in the outer rows but one.
  EXPECT_TRUE(lit(0, 0.333333) || lit(1, 0.333333));
  EXPECT_TRUE(lit(frame.height() - 1, 0.777777) || lit(frame.height() - 2, 0.777777));
}

TEST(Text, LogAxisSaysWhatHasNoPlaceThere) {
  std::vector<double> y;
  for (int i = 0; i < 50; ++i) y.push_back(std::pow(10, i / 10.0));
  y[5] = 0;
  y[6] = -2;
  Plot plot = PlotOf(y);
  plot.log_y = true;
  const std::string text = Text(plot);
  EXPECT_THAT(text,
              HasSubstr("2 of 50 values are not above 0 and not on the log axis, the first at iter 6\n"));
  // A straight line: the middle value is in the middle row.
  const Frame frame = FrameOf(text);
  const int middle = static_cast<int>(25.0 / 49 * frame.width());
  bool lit = false;
  for (int row = frame.height() / 2 - 1; row <= frame.height() / 2; ++row)
    lit = lit || frame.rows[row][middle] != " ";
  EXPECT_TRUE(lit) << text;
}

Plot ThreeSeries() {
  Plot plot = PlotOf({});
  plot.series.clear();
  for (int s = 0; s < 3; ++s) {
    plot.series.push_back({absl::StrCat("series", s), Numbers(0, 10), std::vector<double>(10, 3.0 - s)});
  }
  return plot;
}

TEST(Text, TellsSeriesApartWithoutColour) {
  for (const bool utf8 : {false, true}) {
    const std::string text = Text(ThreeSeries(), {.utf8 = utf8});
    EXPECT_THAT(text, HasSubstr("dt   * series0   + series1   o series2\n"));
    const std::size_t stars = text.find("*****"), plusses = text.find("+++++"), circles = text.find("ooooo");
    EXPECT_LT(stars, plusses);
    EXPECT_LT(plusses, circles);
    EXPECT_LT(circles, text.size());
  }
}

std::string WithoutColours(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

TEST(Text, ColoursOnlyWhenAsked) {
  const std::string plain = Text(PlotOf(SeedTimes())), coloured = Text(PlotOf(SeedTimes()), {.colour = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(coloured.find('\x1b'), std::string::npos);
  EXPECT_EQ(WithoutColours(coloured), plain);
  EXPECT_THAT(Text(ThreeSeries(), {.colour = true}), HasSubstr("▄▄\x1b[0m series1"));
}

std::vector<Plot> Assorted() {
  std::vector<Plot> plots = {PlotOf(SeedTimes()),     PlotOf({}),    PlotOf({5}),
                             PlotOf({kNan, kNan}),    ThreeSeries(), PlotOf({1e308, -1e308, 3}),
                             PlotOf({1e-300, 2e-300})};
  Plot wordy = ThreeSeries();
  wordy.title = std::string(200, 't') + " µs → ∞";
  wordy.unit = "a_unit_of_no_common_length_at_all_µ";
  wordy.series[1].name = std::string(90, 'n');
  wordy.series[0].y[3] = kNan;
  plots.push_back(wordy);
  Plot bytes = PlotOf({8, 1 << 20});
  bytes.log_x = bytes.log_y = true;
  bytes.unit = bytes.x_unit = "bytes";
  plots.push_back(bytes);
  Plot none = PlotOf({});
  none.series.clear();
  plots.push_back(none);
  return plots;
}

TEST(Text, FitsIntoFortyColumns) {
  for (const bool utf8 : {false, true}) {
    for (const Plot& plot : Assorted()) {
      for (const std::string& line : Lines(Text(plot, {.columns = 40, .rows = 12, .utf8 = utf8}))) {
        EXPECT_LE(Letters(line).size(), 40) << line;
      }
    }
  }
}

TEST(Text, HasTheHeightAskedFor) {
  for (const int rows : {9, 22, 50}) {
    EXPECT_EQ(Lines(Text(PlotOf({1, 2, 3}), {.rows = rows})).size(), rows);
  }
}

TEST(Text, IsAsciiWithoutUtf8) {
  for (const Plot& plot : Assorted()) {
    const std::string text = Text(plot, {.utf8 = false});
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
      return c == '\n' || (c >= 32 && c < 127);
    })) << text;
  }
  EXPECT_THAT(Text(PlotOf(SeedTimes()), {.utf8 = false}), HasSubstr("^+\n"));
}

TEST(Text, SaysThatThereAreNoValues) {
  EXPECT_THAT(Text(PlotOf({})), HasSubstr("\nno values\n"));
  EXPECT_THAT(Text(PlotOf({kNan, kNan})), HasSubstr("2 of 2 values are NaN, the first at iter 1\n"));
}

TEST(Text, RefusesSeriesOfTwoLengths) {
  Plot plot = PlotOf({1, 2, 3});
  plot.series[0].x.pop_back();
  const absl::Status status = RenderText(plot, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "plot dt, series dt: 2 values of x but 3 of y");
}

TEST(TextStyleOf, AsksTheEnvironmentForUtf8) {
  const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(TextStyleOf(file).utf8);
  setenv("LC_ALL", "", 1);
  setenv("LC_CTYPE", "de_DE.utf8", 1);
  EXPECT_TRUE(TextStyleOf(file).utf8);
  setenv("LC_ALL", "en_US.UTF-8", 1);
  EXPECT_TRUE(TextStyleOf(file).utf8);
  EXPECT_FALSE(TextStyleOf(file).colour);
  setenv("COLUMNS", "300", 1);
  EXPECT_EQ(TextStyleOf(file).columns, 120);
  close(file);
}

}  // namespace
}  // namespace plait::data
