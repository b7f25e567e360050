// Parses the SVG and converts coordinates back to data; files are written completely or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data/hdf5/atomic_file.h"
#include "data/plot/gnuplot.h"
#include "data/plot/plot.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Plot PlotOf(std::vector<double> y) {
  Plot plot = {.name = "dt", .title = "train/dt", .y_label = "dt", .unit = "K"};
  Series series = {.name = "dt", .y = std::move(y)};
  for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i));
  plot.series = {series};
  return plot;
}

std::vector<double> Wave(int count) {
  std::vector<double> y;
  for (int i = 0; i < count; ++i) y.push_back(2 + std::sin(i * 0.1));
  return y;
}

// As it is written.
std::string Svg(const Plot& plot) {
  const std::string folder = ::testing::TempDir() + "/svg";
  const auto files = WritePictures({plot}, folder);
  EXPECT_TRUE(files.ok()) << files.status();
  return files.ok() ? *ReadWholeFile(files->at(1)) : "";
}

struct Point {
  double x, y;
};

// "M1.00,2.00 L3.00,4.00 ": one list of points per M.
std::vector<std::vector<Point>> Paths(const std::string& commands) {
  std::vector<std::vector<Point>> paths;
  const std::vector<std::string> words =
      absl::StrSplit(commands, absl::ByAnyChar(" \n\t"), absl::SkipEmpty());
  for (const std::string& word : words) {
    if (word[0] == 'M') paths.emplace_back();
    const std::size_t comma = word.find(',');
    const std::size_t digits = word[0] == 'M' || word[0] == 'L' ? 1 : 0;
    paths.back().push_back(
        {std::strtod(word.c_str() + digits, nullptr), std::strtod(word.c_str() + comma + 1, nullptr)});
  }
  return paths;
}

// The paths whose element begins with `opening`.
std::vector<std::vector<Point>> PathsIn(const std::string& svg, const std::string& opening) {
  std::vector<std::vector<Point>> paths;
  for (std::size_t at = svg.find(opening); at != std::string::npos; at = svg.find(opening, at + 1)) {
    const std::size_t begin = svg.find(" d='", at) + 4;
    for (auto& path : Paths(svg.substr(begin, svg.find('\'', begin) - begin))) paths.push_back(path);
  }
  return paths;
}

// What gnuplot drew for the i-th thing to draw, from 1.
std::string PlotGroup(const std::string& svg, int index) {
  const std::size_t begin = svg.find(absl::StrCat("plot_", index, "\""));
  EXPECT_NE(begin, std::string::npos) << index;
  return svg.substr(begin, svg.find("</g>\n\t</g>\n", begin) - begin);
}

std::vector<std::vector<Point>> CurvePaths(const std::string& svg, int index) {
  return PathsIn(PlotGroup(svg, index), "<path ");
}

std::vector<double> TickValues(const std::string& svg, const std::string& anchor) {
  std::vector<double> values;
  const std::regex label("text-anchor=\"" + anchor + "\">\\s*<text>([0-9.e+-]+)</text>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), label), end; it != end; ++it) {
    values.push_back(std::strtod((*it)[1].str().c_str(), nullptr));
  }
  return values;
}

// Pixels to data, from grid lines and the labels of their ticks: y labels end at the axis, x labels are
// centred below it.
struct Scale {
  double offset, factor;
  double operator()(double pixel) const { return offset + factor * pixel; }
};

Scale ScaleFrom(const std::vector<double>& pixels, const std::vector<double>& values) {
  const double factor = (values.back() - values.front()) / (pixels.back() - pixels.front());
  return {values.front() - factor * pixels.front(), factor};
}

std::pair<Scale, Scale> Scales(const std::string& svg) {
  std::vector<double> x, y;
  for (const auto& line : PathsIn(svg, "class=\"gridline\"")) {
    if (line[0].x == line[1].x) x.push_back(line[0].x);
    if (line[0].y == line[1].y) y.push_back(line[0].y);
  }
  std::vector<double> x_values = TickValues(svg, "middle"), y_values = TickValues(svg, "end");
  // A grid line on the frame is left out.
  EXPECT_GE(x.size() + 2, x_values.size());
  x_values.resize(std::min(x_values.size(), x.size()));
  y_values.resize(std::min(y_values.size(), y.size()));
  return {ScaleFrom(x, x_values), ScaleFrom(y, y_values)};
}

// Coordinates have two decimals; so have the grid lines that the scale is read from. On an axis of some 600
// pixels the error of a point is a few hundredths of a pixel.
constexpr double kPixels = 0.06;

TEST(Svg, PathsAreTheData) {
  Plot plot = PlotOf(Wave(95));
  for (double& x : plot.series[0].x) x += 3;  // no tick on the frame
  const std::string svg = Svg(plot);
  const auto [x, y] = Scales(svg);
  const auto paths = CurvePaths(svg, 1);
  ASSERT_EQ(paths.size(), 1);
  ASSERT_EQ(paths[0].size(), 95);
  for (int i = 0; i < 95; ++i) {
    EXPECT_NEAR(x(paths[0][i].x), plot.series[0].x[i], kPixels * x.factor);
    EXPECT_NEAR(y(paths[0][i].y), plot.series[0].y[i], kPixels * std::abs(y.factor));
  }
}

TEST(Svg, LogAxesAreLogarithmic) {
  Plot plot = PlotOf({1, 10, 100, 1000});
  plot.log_y = true;
  const auto paths = CurvePaths(Svg(plot), 1);
  ASSERT_EQ(paths[0].size(), 4);
  const double step = paths[0][1].y - paths[0][0].y;
  for (int i = 1; i < 4; ++i) EXPECT_NEAR(paths[0][i].y - paths[0][i - 1].y, step, 0.021);
}

TEST(Svg, NanIsAGapWithMarks) {
  Plot plot = PlotOf(Wave(100));
  for (int i = 50; i < 60; ++i) plot.series[0].y[i] = kNan;
  const std::string svg = Svg(plot);
  const auto paths = CurvePaths(svg, 1);
  ASSERT_EQ(paths.size(), 2);
  EXPECT_EQ(paths[0].size(), 50);
  EXPECT_EQ(paths[1].size(), 40);
  const std::string marks = PlotGroup(svg, 2);
  const std::regex mark("dt_gpPt1'");
  EXPECT_EQ(std::distance(std::sregex_iterator(marks.begin(), marks.end(), mark), {}), 10);
  EXPECT_THAT(svg, HasSubstr("10 of 100 values are NaN, the first at iter 50"));
}

TEST(Svg, SaysWhatItClipsAndStaysInside) {
  Plot plot = PlotOf(Wave(100));
  plot.series[0].y[70] = 1e300;
  const std::string svg = Svg(plot);
  EXPECT_THAT(svg, HasSubstr("1 of 100 values above 3.1 is not shown: 1e300 at iter 70"));
  for (const auto& path : CurvePaths(svg, 1)) {
    for (const Point& p : path) EXPECT_TRUE(p.x >= 0 && p.x <= 800 && p.y >= 0 && p.y <= 500);
  }
}

// Of 1250 values each: a line of medians in a band that reaches the extremes.
TEST(Svg, LongSeriesAreMediansInABand) {
  Plot plot = PlotOf(Wave(1000000));
  plot.robust = false;
  plot.series[0].y[123456] = 9;
  const std::string svg = Svg(plot);
  EXPECT_LT(svg.size(), 150000);
  EXPECT_THAT(svg, HasSubstr("line: medians of 1,250 values; band: their range"));
  const Scale y = Scales(svg).second;
  const std::string band = PlotGroup(svg, 1);
  const std::size_t begin = band.find("points = '") + 10;
  double top = 500;
  for (const absl::string_view pair :
       absl::StrSplit(band.substr(begin, band.find('\'', begin) - begin), ' ', absl::SkipEmpty())) {
    top = std::min(top, std::strtod(std::string(pair.substr(pair.find(',') + 1)).c_str(), nullptr));
  }
  EXPECT_NEAR(y(top), 9, kPixels * std::abs(y.factor));
  const auto paths = CurvePaths(svg, 2);
  ASSERT_EQ(paths.size(), 1);
  ASSERT_EQ(paths[0].size(), 800);
  // The median of whole periods of the wave is 2; 1250 values are nearly 20 periods.
  for (const Point& p : paths[0]) EXPECT_NEAR(y(p.y), 2, 0.1);
}

TEST(Svg, SeveralSeriesHaveALegendAndColoursOfTheirOwn) {
  Plot plot = PlotOf(Wave(100));
  plot.series.push_back(plot.series[0]);
  plot.series[1].name = "other";
  for (double& y : plot.series[1].y) y += 1;
  const std::string svg = Svg(plot);
  EXPECT_THAT(svg, HasSubstr("<text>other</text>"));
  EXPECT_THAT(PlotGroup(svg, 1), HasSubstr("0, 114, 178"));
  EXPECT_THAT(PlotGroup(svg, 2), HasSubstr("213,  94,   0"));
  EXPECT_THAT(Svg(PlotOf(Wave(100))), Not(HasSubstr("<text>dt</text>")));
}

TEST(Svg, LongNamesStayInTheLegendShortened) {
  Plot plot = PlotOf(Wave(100));
  plot.series.push_back(plot.series[0]);
  plot.series[1].name = std::string(200, 'n');
  EXPECT_THAT(Svg(plot), HasSubstr("<text>" + std::string(45, 'n') + "...</text>"));
}

TEST(Svg, HasItsTitleAndNoSharedIds) {
  const std::string svg = Svg(PlotOf(Wave(100)));
  EXPECT_THAT(svg, StartsWith("<svg"));
  EXPECT_THAT(svg, HasSubstr("<title>train/dt</title>"));
  EXPECT_THAT(svg, HasSubstr("<text>dt [K]</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("'gpPt")));
}

TEST(Svg, TextIsNeverACommand) {
  const std::string victim = ::testing::TempDir() + "/victim";
  fs::remove(victim);
  Plot plot = PlotOf(Wave(10));
  plot.title = "it's'; system('touch " + victim + "') # `touch " + victim + "` @x\\n %d {/*9 a_b^c} <&";
  plot.y_label = "'\nset output '" + victim + "'\n";
  plot.series.push_back(plot.series[0]);
  plot.series[1].name = "$x; `touch /tmp` \xff";
  const std::string svg = Svg(plot);
  EXPECT_FALSE(fs::exists(victim));
  EXPECT_THAT(svg, HasSubstr("<text>it's'; system('touch " + victim + "') # `touch " + victim +
                             "` @x\\n %d {/*9 a_b^c} &lt;&amp;</text>"));
  EXPECT_THAT(svg, HasSubstr("<text>$x; `touch /tmp` ?</text>"));
}

TEST(Quoted, EndsOnlyAtItsEnd) {
  EXPECT_EQ(Quoted("it's"), "'it''s'");
  EXPECT_EQ(Quoted("''a'"), "\"''\" . 'a'''");
  EXPECT_EQ(Quoted("'"), "\"'\" . ''");
  EXPECT_EQ(Quoted("a\nb\x01\x7f"), "'a b  '");
  EXPECT_EQ(Quoted("µ \xc3"), "'µ ?'");
}

class Files : public ::testing::Test {
 protected:
  Files() : folder_(::testing::TempDir() + "/plots") { fs::remove_all(folder_); }
  ~Files() override { fs::remove_all(folder_); }
  std::vector<std::string> Everything() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) found.push_back(fs::relative(entry.path(), folder_).string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string folder_;
};

TEST_F(Files, StandInTheirFolders) {
  Plot loss = PlotOf(Wave(30));
  loss.name = "../train/loss";
  const auto files = WritePictures({PlotOf(Wave(99)), loss}, folder_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 6);
  for (const std::string& file : *files) EXPECT_GT(fs::file_size(file), 100);
  EXPECT_THAT(Everything(), ElementsAre("pngs/_._train_loss.png", "pngs/dt.png", "svgs/_._train_loss.svg",
                                        "svgs/dt.svg", "tplots/_._train_loss.txt", "tplots/dt.txt"));
  const std::string png = ReadWholeFile(folder_ + "/pngs/dt.png").value();
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(16, 8), std::string("\0\0\x03\x20\0\0\x01\xf4", 8));  // 800 x 500
  EXPECT_THAT(ReadWholeFile(folder_ + "/tplots/dt.txt").value(), HasSubstr("train/dt"));
}

TEST_F(Files, TakeTheOldOnesPlaceWhole) {
  ASSERT_TRUE(WritePictures({PlotOf({1, 2})}, folder_).ok());
  const std::string path = folder_ + "/tplots/dt.txt", old = ReadWholeFile(path).value();
  std::ifstream reader(path);  // has the old file open: it must not change under its reader
  ASSERT_TRUE(WritePictures({PlotOf({5, 9})}, folder_).ok());
  const std::string read((std::istreambuf_iterator<char>(reader)), {});
  EXPECT_EQ(read, old);
  EXPECT_NE(ReadWholeFile(path).value(), old);
}

TEST_F(Files, ABadFolderIsNamed) {
  std::ofstream(folder_) << "a file";
  const absl::Status status = WritePictures({PlotOf({1, 2})}, folder_).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_));
  EXPECT_FALSE(status.ok());
}

TEST_F(Files, TwoPlotsOfOneNameAreRefused) {
  const absl::Status status = WritePictures({PlotOf({1}), PlotOf({2})}, folder_).status();
  EXPECT_EQ(status.message(), "two plots are named dt: they would be one file");
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Files, WithoutGnuplotItSaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  EXPECT_TRUE(RenderText(PlotOf({1, 2}), {}).ok());
  const absl::Status files = WritePictures({PlotOf({1, 2})}, folder_).status();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(files.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(files.message(),
            "no plots: the program gnuplot was not found; install it (Debian: apt-get install gnuplot-nox)");
  EXPECT_FALSE(fs::exists(folder_));
}

TEST(Gnuplot, ItsErrorsAreTold) {
  const absl::Status status = RunGnuplot({{"svg", "plot nonsense(1)"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("undefined function: nonsense"));
}

TEST(Gnuplot, AProgramThatDrawsNothingIsAnError) {
  EXPECT_EQ(RunGnuplot({{"svg", "plot x"}}, "true").status().code(), absl::StatusCode::kInternal);
}

// As in programs of a parent that ignores it.
TEST(Gnuplot, DrawsWhereEndedChildrenAreIgnored) {
  std::signal(SIGCHLD, SIG_IGN);
  const absl::Status drawn = RunGnuplot({{"svg", "plot x"}}).status();
  const absl::Status failed = RunGnuplot({{"svg", "plot nonsense(1)"}}).status();
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_TRUE(drawn.ok()) << drawn;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("undefined function: nonsense"));
}

TEST(Gnuplot, TakesNoSettingsOfTheUser) {
  const std::string home = ::testing::TempDir() + "/home";
  fs::create_directories(home);
  std::ofstream(home + "/.gnuplot") << "nonsense\n";
  const std::string old = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  setenv("HOME", home.c_str(), 1);
  EXPECT_TRUE(RunGnuplot({{"svg", "plot x"}}).ok());
  setenv("HOME", old.c_str(), 1);
}

}  // namespace
}  // namespace plait::data
