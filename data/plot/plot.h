// Line plots and heat maps as text for a terminal, as SVG and PNG files; heat maps of an HTML page. gnuplot draws
// the pictures; text needs nothing.
//
//   data::Plot plot = {.name = "dt", .title = "train/dt [2024-07-17-073537]", .x_label = "iter",
//                      .y_label = "dt", .unit = "s", .series = {{"dt", iterations, seconds}}};
//   absl::StatusOr<std::string> text = data::RenderText(plot, data::TextStyleOf(1));
//   if (text.ok()) std::cout << *text;
//   absl::StatusOr<std::vector<std::string>> files = data::WritePictures({plot}, "plots");
//
// Outliers do not flatten a curve: the y axis spans the percentiles 1 to 99 of each series, with a margin,
// and more where that shows everything. Values outside are marked at the edge and noted: "3 of 99 values
// above 2.1 ms are not shown; the largest is 247 ms at iter 99". NaN and infinities leave gaps, marks and a
// note. Long series are drawn as the median and the range of consecutive values. The colours of a heat map
// span the same range.
//
// Errors: INVALID_ARGUMENT if x and y of a series differ in length, x of a heat map does not ascend or its
// values are no whole rows, or two pictures would write the same file;
// FAILED_PRECONDITION if gnuplot is not installed (names the package): a program should print it and
// continue. Local; each call starts at most one gnuplot process. Nothing is read from the user's gnuplot
// settings, and no text reaches a shell.
#ifndef PLAIT_DATA_PLOT_PLOT_H_
#define PLAIT_DATA_PLOT_PLOT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace plait::data {

struct Series {
  std::string name = "";       // for the legend, shown from two series on
  std::vector<double> x = {};  // usually ascending
  std::vector<double> y = {};  // as long as x; NaN and infinities are allowed
};

struct Plot {
  std::string name = "";  // of its files: "dt" gives dt.svg; characters outside [A-Za-z0-9._+-] become _
  std::string title = "";
  std::string x_label = "iter";
  std::string y_label = "";
  std::string unit = "";    // of y; "s" and "bytes" are scaled: 1.5 ms, 64 MiB; others are part of the label
  std::string x_unit = "";  // of x
  std::vector<Series> series = {};
  bool log_y = false;
  bool log_x = false;
  bool robust = true;  // false: the y axis spans all finite values
};

// A number for each row and x, shown as a colour from dark (small) to bright: experts over steps. Where there
// are more numbers than cells, a cell is their mean.
struct HeatMap {
  std::string name = "";  // of its files, as of a plot
  std::string title = "";
  std::string x_label = "iter";
  std::string y_label = "";         // what the rows 0, 1, ... are, the lowest first: "expert"
  std::string value_label = "";     // what the colours are: "rows"
  std::string unit = "";            // of the numbers, as in a plot
  std::vector<double> x = {};       // finite and ascending
  std::vector<double> values = {};  // (row, x); NaN is left empty
  bool robust = true;               // false: the colours span all finite numbers
};

struct TextStyle {
  int columns = 80;  // no line is longer; at least 40 are used
  int rows = 22;     // of the plot, at least 9; notes come below
  bool utf8 = true;  // quadrant blocks and box-drawing characters, else ASCII
  bool colour = false;
};

// What a file descriptor, usually 1, can show: width (at most 120 columns) and colour from the terminal and
// NO_COLOR, UTF-8 from LC_ALL, LC_CTYPE or LANG.
TextStyle TextStyleOf(int file_descriptor);

// Each line ends in a newline. Series are told apart by colour, without colour by characters.
absl::StatusOr<std::string> RenderText(const Plot& plot, const TextStyle& style);
absl::StatusOr<std::vector<std::string>> RenderTexts(absl::Span<const Plot> plots, const TextStyle& style);

// Rows are lines of bars from low to high; in colour, of colours; without UTF-8, of ASCII characters.
absl::StatusOr<std::string> RenderText(const HeatMap& map, const TextStyle& style);

// A heat map of an HTML page: an <svg class="heat"> with the map's title as its label, in the page's colours (CSS
// variables --soft, --line, --grid); those of the cells are the same on light and dark pages. Notes are for a
// caption.
struct PageChart {
  std::string svg;
  std::vector<std::string> notes;
};

// Of the maps 0 .. count-1, which are asked for one at a time, as they may be large.
absl::StatusOr<std::vector<PageChart>> RenderPageHeatMaps(
    int count, const std::function<absl::StatusOr<HeatMap>(int index)>& map);

// Writes folder/tplots/NAME.txt, folder/svgs/NAME.svg and folder/pngs/NAME.png for every plot and heat map and
// returns their paths. Missing folders are made; each file appears complete or not at all, replacing an older
// one.
absl::StatusOr<std::vector<std::string>> WritePictures(absl::Span<const Plot> plots,
                                                       const std::string& folder,
                                                       absl::Span<const HeatMap> maps = {});

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PLOT_H_
