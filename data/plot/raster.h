// A curve as pixels, drawn by gnuplot, and pixels as characters. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_RASTER_H_
#define PLAIT_DATA_PLOT_RASTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/plot/curve.h"
#include "data/plot/gnuplot.h"

namespace plait::data {

// Black and white pixels; row 0 is the lowest.
class Raster {
 public:
  // From the bytes of a portable bitmap (PBM, P4) at least `width` x `height` in size, whose lower left
  // corner is taken: gnuplot fills up to multiples of 8 at the right and the top.
  static absl::StatusOr<Raster> FromPbm(absl::string_view bytes, int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  bool at(int x, int row) const { return pixels_[static_cast<std::size_t>(row) * width_ + x]; }

 private:
  Raster(int width, int height) : width_(width), height_(height), pixels_(std::size_t(width) * height) {}

  int width_, height_;
  std::vector<bool> pixels_;
};

// The page that draws `curve` on width x height pixels: position 0 is the centre of the first pixel, 1 that
// of the last.
GnuplotPage RasterPage(const Curve& curve, int width, int height);

// Pixels folded into one character.
struct Cell {
  int columns = 2, rows = 2;  // of pixels
};
inline constexpr Cell kQuadrants = {2, 2};
inline constexpr Cell kAsciiThirds = {1, 3};
inline constexpr Cell kWhole = {1, 1};

// The pixels of the cell whose lowest left one is (x, row): bit (r * columns + c), r from the bottom.
unsigned CellBits(const Raster& raster, int x, int row, const Cell& cell);

// " ▖▗▄▘▌▚▙▝▞▐▟▀▛▜█" by CellBits of kQuadrants.
absl::string_view QuadrantCharacter(unsigned bits);
// By CellBits of kAsciiThirds: ' for the upper, - for the middle, . for the lower third, | : for several.
char AsciiCharacter(unsigned bits);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_RASTER_H_
