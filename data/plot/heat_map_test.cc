// Cells of text and pixels of the image in the SVG, read back: the numbers again, at their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data/hdf5/atomic_file.h"
#include "data/plot/plot.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// value(row, step) for steps from 0.
template <typename Value>
HeatMap MapOf(int rows, int steps, const Value& value) {
  HeatMap map = {.name = "expert_load_3",
                 .title = "train/expert_load_3",
                 .x_label = "step",
                 .y_label = "expert",
                 .value_label = "rows"};
  for (int i = 0; i < steps; ++i) map.x.push_back(i);
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < steps; ++i) map.values.push_back(value(row, i));
  }
  return map;
}

std::string Text(const HeatMap& map, const TextStyle& style = {}) {
  const absl::StatusOr<std::string> text = RenderText(map, style);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
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

struct Inside {
  std::vector<std::vector<std::string>> rows;  // from the lowest
  std::vector<std::string> labels;
};

Inside InsideOf(const std::string& text) {
  Inside inside;
  bool in = false;
  int left = 0;
  for (const std::string& line : Lines(text)) {
    if (absl::StrContains(line, "└")) break;
    if (in) {
      const std::vector<std::string> letters = Letters(line);
      inside.rows.insert(inside.rows.begin(), {letters.begin() + left + 1, letters.end() - 1});
      inside.labels.insert(inside.labels.begin(), line.substr(0, left));
    }
    if (!absl::StrContains(line, "┌")) continue;
    in = true;
    left = static_cast<int>(line.find("┌"));
  }
  return inside;
}

// What stands at a share of the width.
std::string At(const std::vector<std::string>& row, double share) {
  return row[static_cast<std::size_t>(share * static_cast<double>(row.size()))];
}

// The colours are [0, 10.5] (a margin of 5 %, none below 0), in eighths: 5 is in the fourth one.
HeatMap ByHand() {
  HeatMap map = MapOf(3, 4, [](int row, int) { return row == 0 ? 0.0 : 10.0; });
  map.values[8] = 0;
  map.values[10] = kNan;
  map.values[11] = 5;
  return map;
}

TEST(HeatText, ARowIsALineOfBars) {
  const std::string text = Text(ByHand());
  const Inside inside = InsideOf(text);
  ASSERT_EQ(inside.rows.size(), 3u);
  EXPECT_THAT(inside.labels, ElementsAre("0", "1", "2"));
  EXPECT_EQ(inside.rows[0].size(), 76u) << "of 77, four equal cells";
  EXPECT_THAT(inside.rows[0], ::testing::Each("▁"));
  EXPECT_THAT(inside.rows[1], ::testing::Each("█"));
  const char* top[] = {"▁", "█", " ", "▄"};
  for (int i = 0; i < 4; ++i) {
    for (const double share : {0.26, 0.5, 0.74}) EXPECT_EQ(At(inside.rows[2], (i + share) / 4), top[i]) << i;
  }
  EXPECT_THAT(text, HasSubstr("\nexpert   rows: 0 ▁▂▃▄▅▆▇█ 10.5\n"));
  EXPECT_THAT(text, HasSubstr("\n1 of 12 values is NaN, at step 2, expert 2\n"));
}

TEST(HeatText, WithoutUtf8AndInColour) {
  const std::string ascii = Text(ByHand(), {.utf8 = false});
  EXPECT_TRUE(
      std::all_of(ascii.begin(), ascii.end(), [](char c) { return c == '\n' || (c >= 32 && c < 127); }));
  EXPECT_THAT(ascii, HasSubstr("\nexpert   rows: 0 .:-=+*#%@ 10.5\n"));
  EXPECT_THAT(ascii, HasSubstr("1+" + std::string(76, '@') + "|\n"));
  const std::string coloured = Text(ByHand(), {.colour = true});
  EXPECT_THAT(coloured, HasSubstr("0┤\x1b[38;5;53m█"));
  EXPECT_THAT(coloured, HasSubstr("1┤\x1b[38;5;226m█"));
  EXPECT_THAT(coloured, HasSubstr("█\x1b[0m                   \x1b[38;5;36m█")) << "NaN is empty";
}

// Steps of 0 and 10 in turns are 5 on the average; the other rows keep the range.
TEST(HeatText, LongSeriesAreMeans) {
  const std::string text = Text(MapOf(3, 5000, [](int row, int i) {
    return row == 0 ? 0.0 : row == 1 ? 10.0 : i % 2 == 0 ? 0.0 : 10.0;
  }));
  const Inside inside = InsideOf(text);
  EXPECT_THAT(inside.rows[1], ::testing::Each("█"));
  EXPECT_THAT(inside.rows[2], ::testing::Each("▄"));
  EXPECT_THAT(text, HasSubstr("\neach cell: the mean of up to 65 along step\n"));  // 5000 / 77 = 64.9
}

// Row r has the number r; 16 lines have 12 or 13 of the 200 rows each.
TEST(HeatText, ManyRowsAreMeans) {
  const std::string text = Text(MapOf(200, 3, [](int row, int) { return row; }));
  const Inside inside = InsideOf(text);
  ASSERT_EQ(inside.rows.size(), 16u);
  EXPECT_THAT(inside.rows.front(), ::testing::Each("▁"));
  EXPECT_THAT(inside.rows.back(), ::testing::Each("█"));
  const std::string bars = "▁▂▃▄▅▆▇█";
  for (int line = 1; line < 16; ++line) {
    EXPECT_GE(bars.find(inside.rows[line][0]), bars.find(inside.rows[line - 1][0])) << line;
  }
  EXPECT_THAT(text, HasSubstr("\neach cell: the mean of up to 13 along expert\n"));
}

// A cell reaches half way to its neighbours: that of 10 from 6 to 14, that of 2 from 1.5 to 6.
TEST(HeatText, UnequalStepsHaveTheirPlaces) {
  HeatMap map = MapOf(1, 4, [](int, int i) { return i == 3 ? 10.0 : 0.0; });
  map.x = {0, 1, 2, 10};
  const std::vector<std::string> row = InsideOf(Text(map)).rows[0];
  for (const double x : {0.0, 3.0, 5.7}) EXPECT_EQ(At(row, (x + 0.5) / 14.5), "▁") << x;
  for (const double x : {6.3, 10.0, 13.9}) EXPECT_EQ(At(row, (x + 0.5) / 14.5), "█") << x;
}

TEST(HeatText, OutliersAndInfinitiesAreNoted) {
  HeatMap map = MapOf(8, 70, [](int row, int i) { return row + i % 3; });
  map.values[3 * 70 + 41] = 1000;
  map.values[5 * 70 + 2] = kInfinity;
  const std::string text = Text(map);
  EXPECT_THAT(text, HasSubstr("\n1 of 560 cells is above 9.45: 1000 at step 41, expert 3\n"));
  EXPECT_THAT(text, HasSubstr("\n1 of 560 values is infinite, at step 2, expert 5\n"));
  EXPECT_EQ(At(InsideOf(text).rows[3], 41.5 / 70), "█");
  map.robust = false;
  EXPECT_THAT(Text(map), Not(HasSubstr("above")));
}

TEST(HeatText, RowsAndStepsHaveWholeNumbers) {
  for (const int count : {1, 2, 3, 64}) {
    const std::string text = Text(MapOf(count, count, [](int row, int i) { return row * i; }));
    for (const std::string& label : InsideOf(text).labels) {
      EXPECT_EQ(label.find_first_not_of(" 0123456789"), std::string::npos) << label;
    }
    const std::vector<std::string> lines = Lines(text);
    const auto border = std::find_if(lines.begin(), lines.end(),
                                     [](const std::string& line) { return absl::StrContains(line, "└"); });
    EXPECT_EQ((border + 1)->find_first_not_of(" 0123456789"), std::string::npos) << *(border + 1);
    EXPECT_NE((border + 1)->find('0'), std::string::npos);
  }
}

std::vector<HeatMap> Assorted() {
  const auto wave = [](int row, int i) { return 100 * (1 + std::sin(row * 0.7 + i * 0.02)); };
  std::vector<HeatMap> maps = {MapOf(1, 1, wave),
                               MapOf(1, 200, wave),
                               MapOf(64, 1, wave),
                               MapOf(8, 40, wave),
                               MapOf(64, 5000, wave),
                               MapOf(0, 0, wave),
                               MapOf(4, 6, [](int, int) { return kNan; }),
                               ByHand()};
  HeatMap wordy = MapOf(300, 30, [](int row, int i) { return row == 7 ? kNan : 1e-4 * row * i; });
  wordy.values[3] = 1e30;
  wordy.values[4] = kInfinity;
  wordy.title = std::string(150, 't') + " µs → ∞";
  wordy.y_label = std::string(90, 'y');
  wordy.value_label = std::string(90, 'v');
  wordy.unit = "s";
  maps.push_back(wordy);
  for (std::size_t i = 0; i < maps.size(); ++i) maps[i].name = absl::StrCat("map", i);
  return maps;
}

TEST(HeatText, FitsIntoFortyColumns) {
  for (const bool utf8 : {false, true}) {
    for (const HeatMap& map : Assorted()) {
      for (const std::string& line : Lines(Text(map, {.columns = 40, .rows = 12, .utf8 = utf8}))) {
        EXPECT_LE(Letters(line).size(), 40u) << line;
      }
    }
  }
  EXPECT_THAT(Text(MapOf(0, 0, [](int, int) { return 0.0; })), HasSubstr("\nno values\n"));
}

// The pixels of a PNG image without interlacing, eight bits of red, green, blue and opacity each.
struct Pixels {
  std::uint32_t width = 0, height = 0;
  std::string bytes = {};  // (row from the top, column, channel)

  std::array<int, 4> At(std::uint32_t x, std::uint32_t y) const {
    std::array<int, 4> pixel;
    for (int i = 0; i < 4; ++i) pixel[i] = static_cast<unsigned char>(bytes[4 * (y * width + x) + i]);
    return pixel;
  }
};

std::uint32_t BigEndian(const std::string& bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

int Paeth(int left, int up, int corner) {
  const int p = left + up - corner;
  const int a = std::abs(p - left), b = std::abs(p - up), c = std::abs(p - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

Pixels Decode(const std::string& png) {
  std::string packed;
  for (std::size_t at = 8; at + 8 < png.size(); at += 12 + BigEndian(png, at)) {
    if (png.substr(at + 4, 4) == "IDAT") packed += png.substr(at + 8, BigEndian(png, at));
  }
  Pixels pixels = {BigEndian(png, 16), BigEndian(png, 20)};
  EXPECT_EQ(png.substr(24, 2), std::string("\x08\x06")) << "eight bits, with opacity";
  const std::size_t line = 4 * std::size_t{pixels.width};
  std::string filtered(pixels.height * (line + 1), 0);
  uLongf size = filtered.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(filtered.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  pixels.bytes.resize(pixels.height * line);
  for (std::size_t y = 0; y < pixels.height; ++y) {
    for (std::size_t x = 0; x < line; ++x) {
      const auto before = [&](std::size_t back, std::size_t up) -> int {
        if (x < back || y < up) return 0;
        return static_cast<unsigned char>(pixels.bytes[(y - up) * line + x - back]);
      };
      const int left = before(4, 0), above = before(0, 1);
      const int predicted[] = {0, left, above, (left + above) / 2, Paeth(left, above, before(4, 1))};
      pixels.bytes[y * line + x] = static_cast<char>(filtered[y * (line + 1) + 1 + x] +
                                                     predicted[static_cast<int>(filtered[y * (line + 1)])]);
    }
  }
  return pixels;
}

std::string Svg(const HeatMap& map) {
  const auto files = WritePictures({}, ::testing::TempDir() + "/heat_svg", {map});
  EXPECT_TRUE(files.ok()) << files.status();
  return files.ok() ? *ReadWholeFile(files->at(1)) : "";
}

Pixels ImageIn(const std::string& svg) {
  const std::string opening = "xlink:href='data:image/png;base64,";
  const std::size_t begin = svg.find(opening) + opening.size();
  std::string png;
  EXPECT_TRUE(absl::Base64Unescape(svg.substr(begin, svg.find('\'', begin) - begin), &png));
  return Decode(png);
}

// Viridis at 0, 0.952 (20/21) and 0.476 (10/21) of [0, 10.5]: between the colours given for eighths, the numbers
// worked out by hand. gnuplot has 256 steps of colour.
TEST(HeatSvg, ItsPixelsAreTheNumbers) {
  const std::string svg = Svg(ByHand());
  const Pixels pixels = ImageIn(svg);
  ASSERT_EQ(pixels.width, 4u);
  ASSERT_EQ(pixels.height, 3u);
  const auto near = [](std::array<int, 4> pixel, std::array<int, 3> colour) {
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(pixel[i], colour[i], 3);
    EXPECT_EQ(pixel[3], 255);
  };
  for (int x = 0; x < 4; ++x) {
    near(pixels.At(x, 2), {0x44, 0x01, 0x54});
    near(pixels.At(x, 1), {222, 227, 40});  // 0.619 of the way from #addc30 to #fde725
  }
  near(pixels.At(0, 0), {0x44, 0x01, 0x54});
  near(pixels.At(1, 0), {222, 227, 40});
  EXPECT_EQ(pixels.At(2, 0)[3], 0) << "NaN is empty";
  near(pixels.At(3, 0), {35, 139, 140});  // 0.810 of the way from #2c728e to #21918c
  EXPECT_THAT(svg, HasSubstr("image-rendering:pixelated"));
  for (const char* text : {"train/expert_load_3", "step", "expert", "rows"}) {
    EXPECT_THAT(svg, HasSubstr(absl::StrCat("<text>", text, "</text>")));
  }
}

TEST(HeatSvg, AllSortsAreDrawn) {
  const std::vector<HeatMap> maps = Assorted();
  const std::string folder = ::testing::TempDir() + "/heat_maps";
  const auto files = WritePictures({}, folder, maps);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 3 * maps.size());
  for (const std::string& file : *files) EXPECT_GT(std::filesystem::file_size(file), 100u) << file;
  EXPECT_LT(std::filesystem::file_size(folder + "/svgs/map4.svg"), 200'000u) << "64 rows, 5000 steps";
}

TEST(HeatPages, TheSameCellsInThePagesColours) {
  const auto charts = RenderPageHeatMaps(2, [](int) { return ByHand(); });
  ASSERT_TRUE(charts.ok()) << charts.status();
  ASSERT_EQ(charts->size(), 2u);
  const PageChart& chart = charts->at(1);
  EXPECT_THAT(chart.svg, ::testing::StartsWith("<svg class=\"heat\""));
  EXPECT_THAT(chart.svg, HasSubstr("aria-label=\"train/expert_load_3\""));
  EXPECT_THAT(chart.svg, HasSubstr("var(--soft)"));
  EXPECT_THAT(chart.svg, Not(HasSubstr("rgb(  0,   0,   1)")));
  EXPECT_THAT(chart.svg, Not(HasSubstr("#ffffff"))) << "no background: pages are light or dark";
  EXPECT_THAT(chart.svg, HasSubstr("heat1_plot_1"));
  const Pixels in_page = ImageIn(chart.svg), in_file = ImageIn(Svg(ByHand()));
  EXPECT_EQ(in_page.bytes, in_file.bytes);
  EXPECT_THAT(chart.notes, ElementsAre("1 of 12 values is NaN, at step 2, expert 2"));
}

std::string ErrorOf(const HeatMap& map) { return std::string(RenderText(map, {}).status().message()); }

TEST(HeatMaps, WhatIsNoMapIsRefused) {
  HeatMap map = ByHand();
  map.values.pop_back();
  EXPECT_EQ(ErrorOf(map), "heat map expert_load_3: 11 values for 4 of x, expected whole rows");
  map = ByHand();
  map.x = {};
  EXPECT_EQ(ErrorOf(map), "heat map expert_load_3: 12 values for 0 of x, expected whole rows");
  for (const double bad : {1.0, 0.0, kNan, kInfinity}) {
    map = ByHand();
    map.x[2] = bad;
    EXPECT_THAT(ErrorOf(map), HasSubstr("x[2] is ")) << bad;
  }
  const Plot plot = {.name = "expert_load_3", .series = {{"a", {1, 2}, {3, 4}}}};
  EXPECT_EQ(WritePictures({plot}, ::testing::TempDir() + "/twice", {ByHand()}).status().message(),
            "two plots are named expert_load_3: they would be one file");
}

}  // namespace
}  // namespace plait::data
