// Curves as text for a terminal, as SVG and as PNG. gnuplot draws them.
//
//   data::Plot plot = {.name = "dt", .title = "train/dt [2024-07-17-073537]", .x_label = "iter",
//                      .y_label = "dt", .unit = "s", .series = {{"dt", iterations, seconds}}};
//   absl::StatusOr<std::string> text = data::RenderText(plot, data::TextStyleOf(1));
//   if (text.ok()) std::cout << *text;
//   absl::StatusOr<std::vector<std::string>> files = data::WritePictures({plot}, "plots");
//
// One far value does not flatten the curve: the y axis spans the percentiles 1 to 99 of each series, with a
// margin, and a little further where that shows everything. What lies outside is marked at the edge, and the
// picture says so: "3 of 99 values above 0.0021 are not shown; the largest is 0.247 at iter 99". NaN and
// infinities leave gaps, marks on the axis and a note. Long series are thinned to what the picture can show;
// extremes stay.
//
// Errors: INVALID_ARGUMENT where x and y of a series differ in length, or two plots would write one file;
// FAILED_PRECONDITION where gnuplot is not installed, naming the package: pictures are no reason to end a
// run. Local; one short-lived gnuplot process per call, whatever the number of plots. Nothing is read from
// the user's gnuplot settings, and no text reaches a shell.
#ifndef PLAIT_DATA_PLOT_PLOT_H_
#define PLAIT_DATA_PLOT_PLOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace plait::data {

struct Series {
  std::string name = "";       // for the legend, which is there from two series on
  std::vector<double> x = {};  // usually ascending
  std::vector<double> y = {};  // as long as x; NaN and infinities are allowed
};

struct Plot {
  std::string name = "";  // of its files: "dt" gives dt.svg; other characters than [A-Za-z0-9._+-] become _
  std::string title = "";
  std::string x_label = "iter";
  std::string y_label = "";
  std::string unit = "";    // of y, "s": the axis reads "dt [s]"; "" and "1" show none
  std::string x_unit = "";  // of x
  std::vector<Series> series = {};
  bool log_y = false;
  bool log_x = false;
  // x counts bytes: ticks at powers of two, written 8, 1Ki, 64Mi.
  bool x_in_bytes = false;
  bool y_in_bytes = false;
  // The axis ends near the percentiles 1 and 99 (see above); false: it spans all finite values.
  bool robust = true;
};

struct TextStyle {
  int columns = 80;  // no line is longer; at least 40 are used
  int rows = 22;     // of the picture, at least 8; notes come below
  bool utf8 = true;  // quadrant blocks and box-drawing characters, else ASCII
  bool colour = false;
};

// What a file descriptor, usually 1, can show: width (at most 120 columns are used) and colour from the
// terminal and NO_COLOR, UTF-8 from LC_ALL, LC_CTYPE or LANG.
TextStyle TextStyleOf(int file_descriptor);

// Each line ends in a newline. Series are told apart by colour, without colour by characters.
absl::StatusOr<std::string> RenderText(const Plot& plot, const TextStyle& style);
absl::StatusOr<std::vector<std::string>> RenderTexts(absl::Span<const Plot> plots, const TextStyle& style);

struct PictureStyle {
  int width = 800;
  int height = 500;
  bool dark = false;         // light lines and letters, for a dark background
  bool transparent = false;  // no background: the page's shows
};

// An SVG document, without the XML declaration: it may stand in an HTML page.
absl::StatusOr<std::string> RenderSvg(const Plot& plot, const PictureStyle& style);
absl::StatusOr<std::vector<std::string>> RenderSvgs(absl::Span<const Plot> plots, const PictureStyle& style);

struct PictureOptions {
  bool text = true;
  bool svg = true;
  bool png = true;
  TextStyle text_style = {};
  PictureStyle picture_style = {};
};

// Writes folder/tplots/NAME.txt, folder/svgs/NAME.svg and folder/pngs/NAME.png for every plot and returns
// their paths. Missing folders are made; each file appears whole or not at all, in place of an older one.
absl::StatusOr<std::vector<std::string>> WritePictures(absl::Span<const Plot> plots,
                                                       const std::string& folder,
                                                       const PictureOptions& options = {});

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PLOT_H_
