#include "data/plot/heat_picture.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "data/plot/heat_view.h"
#include "data/plot/view.h"

namespace plait::data {
namespace {

constexpr int kMostTicks = 8;

// Viridis (matplotlib): equal steps look equal, also without colours and to colour-blind readers.
constexpr char kPalette[] =
    "set palette defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', 5 '#28ae80', "
    "6 '#5ec962', 7 '#addc30', 8 '#fde725')\n";

// A border of the bar would have no colour of the page.
constexpr char kPageMargins[] =
    "unset grid\nset cbrange [0:1]\nset colorbox noborder\nset lmargin at screen 0.12\n"
    "set rmargin at screen 0.8\nset tmargin at screen 0.95\nset bmargin at screen 0.13\n";

// The bar of colours with its numbers; gnuplot places its label without regard to their length.
std::string ColourBar(const HeatMap& map, const HeatView& view) {
  int longest = 1;
  for (const Tick& tick : Ticks(view.value, kMostTicks))
    longest = std::max(longest, base::TextWidth(tick.label));
  return absl::StrCat("set rmargin ", longest + 2, "\nset cbrange [0:1]\n", kPalette,
                      TickCommand("cb", view.value, kMostTicks), "set cblabel ",
                      Quoted(AxisLabel(map.value_label, map.unit)), " offset ", longest - 2,
                      ",0 textcolor rgb '", kFileColours.letters, "'\n");
}

// gnuplot's images have at least two columns and rows: a single one is doubled.
std::string ImageCommands(const HeatView& view) {
  const std::size_t rows = std::max<std::size_t>(2, view.rows),
                    columns = std::max<std::size_t>(2, view.columns);
  std::string matrix;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t cell = row * view.rows / rows * view.columns + column * view.columns / columns;
      const double position = view.cells.empty() ? std::nan("") : view.cells[cell];
      absl::StrAppend(&matrix, std::isnan(position) ? "NaN" : absl::StrFormat("%.5g", position),
                      column + 1 == columns ? "\n" : " ");
    }
  }
  return absl::StrFormat(
      "$cells << END_OF_DATA\n%sEND_OF_DATA\n"
      "plot $cells matrix using (($1+0.5)/%d):(($2+0.5)/%d):3 with image notitle",
      matrix, columns, rows);
}

}  // namespace

// Cells of at least a pixel: gnuplot's images would drop columns.
absl::StatusOr<HeatView> HeatPictureView(const HeatMap& map, PictureFormat format) {
  return format == PictureFormat::kPage ? HeatViewOf(map, 240, 160) : HeatViewOf(map, 560, 360);
}

GnuplotPage HeatPage(const HeatMap& map, const HeatView& view, PictureFormat format) {
  if (format == PictureFormat::kPage) {
    return {Terminal(format), absl::StrCat(FrameCommands(view.x, view.y, kPageColours, 5, 5), kPageMargins,
                                           kPalette, TickCommand("cb", view.value, 5), ImageCommands(view))};
  }
  std::string commands = FrameCommands(view.x, view.y, kFileColours, kMostTicks, kMostTicks);
  commands += LetterCommands({.title = map.title, .x_label = map.x_label, .y_label = map.y_label}, view.notes,
                             format);
  return {Terminal(format),
          absl::StrCat(commands, "unset grid\n", ColourBar(map, view), ImageCommands(view))};
}

}  // namespace plait::data
