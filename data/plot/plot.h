// Line plots and heat maps as text for a terminal and as SVG and PNG files; heat maps for HTML pages. Pictures need
// gnuplot, text does not.
//
//   data::Plot plot = {.name = "dt", .title = "train/dt [2024-07-17-073537]", .x_label = "iter",
//                      .y_label = "dt", .unit = "s", .series = {{"dt", iterations, seconds}}};
//   absl::StatusOr<std::string> text = data::RenderText(plot, data::TextStyleOf(1));
//   if (text.ok()) std::cout << *text;
//   absl::StatusOr<std::vector<std::string>> files = data::WritePictures({plot}, "plots");
//
// Outliers do not flatten a curve: the y axis spans the percentiles 1 to 99 of each series, extended to nearby values
// (AxisRange::kRobust in axis.h). Values outside are marked at the edge and noted: "3 of 99 values above 2.1 ms are
// not shown; the largest is 247 ms at iter 99". NaN and infinities leave gaps, marks and a note. Long series are drawn
// as median and range of consecutive values. The colours of a heat map span the same kind of range.
//
// Errors: INVALID_ARGUMENT if x and y of a series differ in length, x of a heat map is not strictly ascending or its
// values are not whole rows, or two pictures would have the same file name; FAILED_PRECONDITION if gnuplot is not
// installed (names the package): programs should print it and continue; INTERNAL and DEADLINE_EXCEEDED if gnuplot
// fails. Local; each call starts at most one gnuplot process, without a shell or the user's gnuplot settings.
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
  std::string name = "";       // for the legend, which is shown for two or more series
  std::vector<double> x = {};  // usually ascending
  std::vector<double> y = {};  // as long as x; NaN and infinities are allowed
};

struct Plot {
  std::string name = "";  // file name: "dt" gives dt.svg; characters outside [A-Za-z0-9._+-] become _
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

// A value for each row and x, shown as a colour from dark (small) to bright: load of experts over steps, say. If there
// are more values than cells, a cell is their mean.
struct HeatMap {
  std::string name = "";  // file name, as in Plot
  std::string title = "";
  std::string x_label = "iter";
  std::string y_label = "";         // what rows 0, 1, ... are, from the bottom: "expert"
  std::string value_label = "";     // what the values are: "rows"
  std::string unit = "";            // of the values, as in Plot
  std::vector<double> x = {};       // finite and strictly ascending
  std::vector<double> values = {};  // (rows, x.size()), row-major; NaN cells are empty
  bool robust = true;               // false: the colours span all finite values
};

struct TextStyle {
  int columns = 80;  // width of the text; at least 40 are used
  int rows = 22;     // of the plot, at least 9; notes come below
  bool utf8 = true;  // quadrant blocks and box-drawing characters, else ASCII
  bool colour = false;
};

// The style for a file descriptor, usually 1 (stdout): width (at most 120 columns) and colour from the terminal and
// NO_COLOR, UTF-8 from LC_ALL, LC_CTYPE or LANG.
TextStyle TextStyleOf(int file_descriptor);

// Each line ends in a newline. Series are distinguished by colour, or by characters without colour.
absl::StatusOr<std::string> RenderText(const Plot& plot, const TextStyle& style);
absl::StatusOr<std::vector<std::string>> RenderTexts(absl::Span<const Plot> plots, const TextStyle& style);

// Each row is a line of block characters whose height shows the value; with colour, of colours; without UTF-8, of
// ASCII characters.
absl::StatusOr<std::string> RenderText(const HeatMap& map, const TextStyle& style);

// A heat map for an HTML page: an <svg class="heat"> whose aria-label is the map's title, in the page's colours (CSS
// variables --soft, --line, --grid); the colours of the cells are fixed. Notes are for the caption.
struct PageChart {
  std::string svg;
  std::vector<std::string> notes;
};

// Renders maps 0 .. count-1. `map` is called for one at a time, as they may be large; its errors are returned.
absl::StatusOr<std::vector<PageChart>> RenderPageHeatMaps(
    int count, const std::function<absl::StatusOr<HeatMap>(int index)>& map);

// Writes folder/tplots/NAME.txt, folder/svgs/NAME.svg and folder/pngs/NAME.png for every plot and heat map and
// returns their paths. Creates missing folders; each file is written atomically, replacing an older one.
absl::StatusOr<std::vector<std::string>> WritePictures(absl::Span<const Plot> plots,
                                                       const std::string& folder,
                                                       absl::Span<const HeatMap> maps = {});

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PLOT_H_
