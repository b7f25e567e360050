#include "data/plot/raster.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::data {
namespace {

// The next number of a PBM header; moves `bytes` behind it.
int TakeNumber(absl::string_view& bytes) {
  while (!bytes.empty() && absl::ascii_isspace(bytes[0])) bytes.remove_prefix(1);
  std::size_t length = 0;
  while (length < bytes.size() && absl::ascii_isdigit(bytes[length])) ++length;
  int number = 0;
  if (!absl::SimpleAtoi(bytes.substr(0, length), &number)) number = 0;
  bytes.remove_prefix(length);
  return number;
}

}  // namespace

absl::StatusOr<Raster> Raster::FromPbm(absl::string_view bytes, int width, int height) {
  const absl::Status bad = absl::InternalError("no plots: gnuplot drew no portable bitmap");
  if (bytes.substr(0, 2) != "P4") return bad;
  bytes.remove_prefix(2);
  const int full_width = TakeNumber(bytes), full_height = TakeNumber(bytes);
  if (full_width < width || full_height < height || bytes.empty()) return bad;
  bytes.remove_prefix(1);
  const std::size_t row_bytes = (static_cast<std::size_t>(full_width) + 7) / 8;
  if (bytes.size() < row_bytes * full_height) return bad;
  Raster raster(width, height);
  for (int row = 0; row < height; ++row) {
    const absl::string_view line = bytes.substr(row_bytes * (full_height - 1 - row), row_bytes);
    for (int x = 0; x < width; ++x) {
      raster.pixels_[static_cast<std::size_t>(row) * width + x] = (line[x / 8] >> (7 - x % 8)) & 1;
    }
  }
  return raster;
}

GnuplotPage RasterPage(const Curve& curve, int width, int height) {
  std::string commands =
      "unset border; unset tics; unset key\n"
      "set lmargin at screen 0; set rmargin at screen 1; set bmargin at screen 0; set tmargin at screen 1\n"
      "set xrange [0:1]; set yrange [0:1]; set clip two\n$curve << END_OF_CURVE\n";
  // A point in no place keeps gnuplot from refusing an empty block.
  if (curve.stretches.empty()) absl::StrAppend(&commands, "-9 -9\n");
  for (const Stretch& stretch : curve.stretches) {
    for (const Position& p : stretch) absl::StrAppendFormat(&commands, "%.7g %.7g\n", p.x, p.y);
    absl::StrAppend(&commands, "\n");
  }
  absl::StrAppend(&commands, "END_OF_CURVE\nplot $curve with lines lc rgb 'black', $curve with dots");
  return {absl::StrFormat("pbm size %d,%d monochrome", width, height), std::move(commands)};
}

unsigned CellBits(const Raster& raster, int x, int row, const Cell& cell) {
  unsigned bits = 0;
  for (int r = 0; r < cell.rows; ++r) {
    for (int c = 0; c < cell.columns; ++c) {
      if (raster.at(x + c, row + r)) bits |= 1U << (r * cell.columns + c);
    }
  }
  return bits;
}

absl::string_view QuadrantCharacter(unsigned bits) {
  static constexpr std::array<absl::string_view, 16> kCharacters = {" ", "▖", "▗", "▄", "▘", "▌", "▚", "▙",
                                                                    "▝", "▞", "▐", "▟", "▀", "▛", "▜", "█"};
  return kCharacters[bits & 15];
}

char AsciiCharacter(unsigned bits) { return " .-.':'|"[bits & 7]; }

}  // namespace plait::data
