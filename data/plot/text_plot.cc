#include "data/plot/text_plot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"

namespace plait::data {
namespace {

using base::TextWidth;

// Lines around the curves: title, heading, two of the frame, tick labels, label of x.
constexpr int kOtherRows = 6;
// Okabe and Ito's palette for colour-blind readers, as near as 256 colours come.
constexpr std::array<int, 6> kColours = {33, 208, 36, 175, 220, 81};
// Bit (2 r + c): row r from the bottom, column c.
constexpr std::array<const char*, 16> kQuadrants = {" ", "▖", "▗", "▄", "▘", "▌", "▚", "▙",
                                                    "▝", "▞", "▐", "▟", "▀", "▛", "▜", "█"};
constexpr char kThirds[] = " .-.':'|";  // bit r: row r from the bottom
constexpr char kLetters[] = "*+ox#@%&";

std::string Spaces(int count) { return std::string(std::max(0, count), ' '); }

class TextPlotter {
 public:
  TextPlotter(const Plot& plot, const View& view, const TextStyle& style)
      : plot_(plot),
        view_(view),
        style_(style),
        letters_(view.curves.size() > 1 && !(style.colour && style.utf8)) {
    cell_columns_ = !letters_ && style.utf8 ? 2 : 1;
    cell_rows_ = letters_ ? 1 : style.utf8 ? 2 : 3;
    height_ = style.rows - kOtherRows;
    y_ticks_ = Ticks(view.y, std::max(2, height_ / 3 + 1));
    for (Tick& tick : y_ticks_) {
      tick.label = Plain(tick.label);
      gutter_ = std::max(gutter_, TextWidth(tick.label));
    }
    width_ = style.columns - gutter_ - 2;
    int needed = width_ + 1;
    for (int most = std::max(2, width_ / 6); most >= 2 && needed > width_; --most) {
      x_ticks_ = Ticks(view.x, most);
      needed = 0;
      for (const Tick& tick : x_ticks_) needed += TextWidth(tick.label) + 4;
    }
    for (const Curve& curve : view.curves) Draw(curve);
  }

  std::string Text() const {
    std::string text = absl::StrCat(Centred(plot_.title), Heading(), Border(true), Body(), Border(false),
                                    TickLabels(), Centred(AxisLabel(plot_.x_label, plot_.x_unit)));
    for (const std::string& note : view_.notes) {
      for (const std::string& line : base::WrapText(Plain(note), style_.columns, 2)) {
        absl::StrAppend(&text, line, "\n");
      }
    }
    return text;
  }

 private:
  int Pixel(double position, int pixels) const {
    return static_cast<int>(std::lround(position * (pixels - 1)));
  }
  int Column(double position) const { return Pixel(position, width_ * cell_columns_) / cell_columns_; }
  int Row(double position) const { return Pixel(position, height_ * cell_rows_) / cell_rows_; }

  void Draw(const Curve& curve) {
    pixels_.emplace_back(width_ * height_);
    for (const auto& stretch : curve.stretches) {
      for (std::size_t i = 0; i < stretch.size(); ++i) {
        const CurvePoint &a = stretch[i], &b = stretch[std::min(i + 1, stretch.size() - 1)];
        Line(a.x, a.middle, b.x, b.middle);
        Line(a.x, a.low, a.x, a.high);
      }
    }
  }

  void Line(double x0, double y0, double x1, double y1) {
    const int columns = width_ * cell_columns_, rows = height_ * cell_rows_;
    const int steps = 1 + static_cast<int>(std::max(std::abs(x1 - x0) * columns, std::abs(y1 - y0) * rows));
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      const int x = Pixel(x0 + t * (x1 - x0), columns), y = Pixel(y0 + t * (y1 - y0), rows);
      if (x < 0 || x >= columns || y < 0 || y >= rows) continue;
      pixels_.back()[y / cell_rows_ * width_ + x / cell_columns_] |=
          1 << (y % cell_rows_ * cell_columns_ + x % cell_columns_);
    }
  }

  std::string Plain(const std::string& text) const {
    return style_.utf8 ? base::Printable(text) : base::AsciiOnly(base::Printable(text));
  }

  std::string Coloured(const std::string& text, std::size_t series) const {
    if (!style_.colour) return text;
    return absl::StrFormat("\x1b[38;5;%dm%s\x1b[0m", kColours[series % kColours.size()], text);
  }

  std::string Letter(std::size_t series) const { return std::string(1, kLetters[series % 8]); }

  // Over the inside of the frame, if it fits there.
  std::string Centred(const std::string& text) const {
    const std::string plain = Plain(text);
    const absl::string_view shown = base::TextPrefix(plain, style_.columns);
    const int middle = gutter_ + 1 + (width_ - TextWidth(shown)) / 2;
    const std::string line = Spaces(std::min(middle, style_.columns - TextWidth(shown)));
    return absl::StrCat(absl::StripTrailingAsciiWhitespace(absl::StrCat(line, shown)), "\n");
  }

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

  // The curve with most pixels in the cell gives the colour, all of them the shape.
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
    for (int column = 0; column < width_; ++column) {
      std::size_t series = run_series;
      const std::string cell = Cell(row * width_ + column, series);
      if (series != run_series && !run.empty()) text += Coloured(std::exchange(run, ""), run_series);
      run_series = series;
      run += cell;
    }
    return text + (absl::StripAsciiWhitespace(run).empty() ? run : Coloured(run, run_series));
  }

  std::string Body() const {
    const std::string side = style_.utf8 ? "│" : "|";
    std::string text;
    for (int row = height_ - 1; row >= 0; --row) {
      const auto tick = std::find_if(y_ticks_.begin(), y_ticks_.end(),
                                     [&](const Tick& t) { return Row(view_.y.Position(t.value)) == row; });
      const bool is_tick = tick != y_ticks_.end();
      const std::string label = is_tick ? tick->label : "";
      absl::StrAppend(&text, Spaces(gutter_ - TextWidth(label)), label,
                      !is_tick      ? side
                      : style_.utf8 ? "┤"
                                    : "+",
                      CurveRow(row), side, "\n");
    }
    return text;
  }

  // The edges of the frame carry the marks of what is outside of it.
  std::string Border(bool top) const {
    std::vector<std::string> line(width_, style_.utf8 ? "─" : "-");
    const auto mark = [&](double position, const char* utf8, const char* ascii) {
      line[Column(std::clamp(position, 0.0, 1.0))] = style_.utf8 ? utf8 : ascii;
    };
    for (const Tick& tick : x_ticks_) {
      if (!top) mark(view_.x.Position(tick.value), "┬", "+");
    }
    for (const Curve& curve : view_.curves) {
      for (const double x : top ? curve.above : curve.below) mark(x, top ? "▲" : "▼", top ? "^" : "v");
      if (top) continue;
      for (const double x : curve.not_a_number) mark(x, "×", "x");
    }
    std::string text = Spaces(gutter_) + (style_.utf8 ? (top ? "┌" : "└") : "+");
    for (const std::string& character : line) text += character;
    return absl::StrCat(text, style_.utf8 ? (top ? "┐" : "┘") : "+", "\n");
  }

  std::string TickLabels() const {
    std::string line;
    for (const Tick& tick : x_ticks_) {
      const std::string label = Plain(tick.label);
      const int length = TextWidth(label), used = TextWidth(line);
      const int middle = gutter_ + 1 + Column(std::clamp(view_.x.Position(tick.value), 0.0, 1.0));
      const int begin = std::min(middle - length / 2, style_.columns - length);
      if (begin < used + (line.empty() ? 0 : 1)) continue;
      absl::StrAppend(&line, Spaces(begin - used), label);
    }
    return line + "\n";
  }

  const Plot& plot_;
  const View& view_;
  const TextStyle& style_;
  bool letters_;  // several series without colours are several letters
  int cell_columns_, cell_rows_;
  int gutter_ = 0;              // columns left of the frame
  int width_ = 0, height_ = 0;  // of the frame's inside, in characters
  std::vector<Tick> x_ticks_, y_ticks_;
  std::vector<std::vector<std::uint8_t>> pixels_;  // by series and cell
};

}  // namespace

std::string TextPlot(const Plot& plot, const View& view, const TextStyle& style) {
  return TextPlotter(plot, view, style).Text();
}

}  // namespace plait::data
