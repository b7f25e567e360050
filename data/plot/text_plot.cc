#include "data/plot/text_plot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "data/plot/text_frame.h"

namespace plait::data {
namespace {

using base::TextWidth;

// Okabe and Ito's palette for colour-blind readers, as near as 256 colours come.
constexpr std::array<int, 6> kColours = {33, 208, 36, 175, 220, 81};
// Bit (2 r + c): row r from the bottom, column c.
constexpr std::array<const char*, 16> kQuadrants = {" ", "▖", "▗", "▄", "▘", "▌", "▚", "▙",
                                                    "▝", "▞", "▐", "▟", "▀", "▛", "▜", "█"};
constexpr char kThirds[] = " .-.':'|";  // bit r: row r from the bottom
constexpr char kLetters[] = "*+ox#@%&";

class TextPlotter {
 public:
  TextPlotter(const Plot& plot, const View& view, const TextStyle& style)
      : plot_(plot),
        view_(view),
        style_(style),
        letters_(view.curves.size() > 1 && !(style.colour && style.utf8)),
        cell_columns_(!letters_ && style.utf8 ? 2 : 1),
        cell_rows_(letters_     ? 1
                   : style.utf8 ? 2
                                : 3),
        frame_(
            view.x, view.y, style,
            {.height = style.rows - kTextFrameRows, .cell_columns = cell_columns_, .cell_rows = cell_rows_}) {
    for (const Curve& curve : view.curves) Draw(curve);
  }

  std::string Text() const {
    std::string text = absl::StrCat(frame_.Centred(plot_.title), Heading(), Border(true));
    for (int row = frame_.height() - 1; row >= 0; --row) text += frame_.Line(row, CurveRow(row));
    return absl::StrCat(text, Border(false), frame_.TickLabels(),
                        frame_.Centred(AxisLabel(plot_.x_label, plot_.x_unit)), frame_.Notes(view_.notes));
  }

 private:
  void Draw(const Curve& curve) {
    pixels_.emplace_back(frame_.width() * frame_.height());
    for (const auto& stretch : curve.stretches) {
      for (std::size_t i = 0; i < stretch.size(); ++i) {
        const CurvePoint &a = stretch[i], &b = stretch[std::min(i + 1, stretch.size() - 1)];
        Line(a.x, a.middle, b.x, b.middle);
        Line(a.x, a.low, a.x, a.high);
      }
    }
  }

  void Line(double x0, double y0, double x1, double y1) {
    const int columns = frame_.width() * cell_columns_, rows = frame_.height() * cell_rows_;
    const int steps = 1 + static_cast<int>(std::max(std::abs(x1 - x0) * columns, std::abs(y1 - y0) * rows));
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      const int x = PixelAt(x0 + t * (x1 - x0), columns), y = PixelAt(y0 + t * (y1 - y0), rows);
      if (x < 0 || x >= columns || y < 0 || y >= rows) continue;
      pixels_.back()[y / cell_rows_ * frame_.width() + x / cell_columns_] |=
          1 << (y % cell_rows_ * cell_columns_ + x % cell_columns_);
    }
  }

  std::string Plain(const std::string& text) const { return PlainText(text, style_); }

  std::string Coloured(const std::string& text, std::size_t series) const {
    return ColouredText(text, kColours[series % kColours.size()], style_);
  }

  std::string Letter(std::size_t series) const { return std::string(1, kLetters[series % 8]); }

  // What y is, and the legend.
  std::string Heading() const {
    std::string text, label = Plain(AxisLabel(plot_.y_label, plot_.unit));
    std::string line(base::TextPrefix(label, style_.columns));
    int used = TextWidth(line);
    for (std::size_t i = 0; i < view_.curves.size() && view_.curves.size() > 1; ++i) {
      const std::string plain = Plain(view_.curves[i].name), mark = letters_ ? Letter(i) : "▄▄";
      const absl::string_view name = base::TextPrefix(plain, style_.columns - 6);
      const int needed = TextWidth(mark) + 1 + TextWidth(name);
      if (used > 0 && used + 3 + needed > style_.columns) {
        absl::StrAppend(&text, line, "\n");
        line.clear();
        used = 0;
      }
      absl::StrAppend(&line, used > 0 ? "   " : "", Coloured(mark, i), " ", name);
      used += (used > 0 ? 3 : 0) + needed;
    }
    return absl::StrCat(text, line, "\n");
  }

  // The curve with most pixels in the cell determines the colour, all curves together the shape.
  std::string Cell(int place, std::size_t& series) const {
    unsigned all = 0;
    int most = 0;
    for (std::size_t i = 0; i < pixels_.size(); ++i) {
      const unsigned bits = pixels_[i][place];
      all |= bits;
      if (std::popcount(bits) > most) {
        most = std::popcount(bits);
        series = i;
      }
    }
    if (all == 0) return " ";
    if (letters_) return Letter(series);
    return style_.utf8 ? kQuadrants[all] : std::string(1, kThirds[all]);
  }

  // Neighbours of one colour share its escape sequence.
  std::string CurveRow(int row) const {
    std::string text, run;
    std::size_t run_series = 0;
    for (int column = 0; column < frame_.width(); ++column) {
      std::size_t series = run_series;
      const std::string cell = Cell(row * frame_.width() + column, series);
      if (series != run_series && !run.empty()) text += Coloured(std::exchange(run, ""), run_series);
      run_series = series;
      run += cell;
    }
    return text + (absl::StripAsciiWhitespace(run).empty() ? run : Coloured(run, run_series));
  }

  // The edges of the frame carry the marks of what is outside of it.
  std::string Border(bool top) const {
    std::vector<std::pair<double, const char*>> marks;
    for (const Curve& curve : view_.curves) {
      const char* mark = style_.utf8 ? (top ? "▲" : "▼") : top ? "^" : "v";
      for (const double x : top ? curve.above : curve.below) marks.emplace_back(x, mark);
      if (top) continue;
      for (const double x : curve.not_a_number) marks.emplace_back(x, style_.utf8 ? "×" : "x");
    }
    return frame_.Border(top, marks);
  }

  const Plot& plot_;
  const View& view_;
  const TextStyle& style_;
  bool letters_;  // several series without colours are several letters
  int cell_columns_, cell_rows_;
  TextFrame frame_;
  std::vector<std::vector<std::uint8_t>> pixels_;  // by series and cell
};

}  // namespace

std::string TextPlot(const Plot& plot, const View& view, const TextStyle& style) {
  return TextPlotter(plot, view, style).Text();
}

}  // namespace plait::data
