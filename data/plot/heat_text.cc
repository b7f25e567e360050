#include "data/plot/heat_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/plot/heat_view.h"
#include "data/plot/text_frame.h"
#include "data/plot/view.h"

namespace plait::data {
namespace {

using base::TextWidth;

// From the smallest to the largest value; a space for NaN.
constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 9> kAscii = {".", ":", "-", "=", "+", "*", "#", "%", "@"};
// Viridis, as near as 256 colours come.
constexpr std::array<int, 9> kViridis = {53, 54, 24, 30, 36, 72, 77, 148, 226};

class Ramp {
 public:
  explicit Ramp(const TextStyle& style) : style_(style) {}

  int levels() const {
    return static_cast<int>(style_.colour || !style_.utf8 ? kAscii.size() : kBars.size());
  }
  // -1: no number.
  int LevelOf(double position) const {
    return std::isnan(position) ? -1 : std::min(levels() - 1, static_cast<int>(position * levels()));
  }
  std::string Characters(int level, int count) const {
    if (level < 0) return Spaces(count);
    const char* one = style_.colour ? (style_.utf8 ? "█" : "#") : style_.utf8 ? kBars[level] : kAscii[level];
    std::string all;
    for (int i = 0; i < count; ++i) all += one;
    return ColouredText(all, kViridis[level], style_);
  }
  std::string All() const {
    std::string all;
    for (int level = 0; level < levels(); ++level) all += Characters(level, 1);
    return all;
  }

 private:
  const TextStyle& style_;
};

// "expert    load: 0 ▁▂▃▄▅▆▇█ 340", what rows are and what the characters mean.
std::string Heading(const HeatMap& map, const HeatView& view, const Ramp& ramp, const TextStyle& style) {
  const auto number = [&](double value) { return PlainText(base::FormatQuantity(value, map.unit), style); };
  const std::string low = number(view.value.low), high = number(view.value.high);
  const int ramp_columns = TextWidth(low) + TextWidth(high) + ramp.levels() + 2;
  const std::string rows = PlainText(map.y_label, style),
                    value = PlainText(AxisLabel(map.value_label, map.unit), style);
  const int room = style.columns - ramp_columns - 2;
  const absl::string_view shown = base::TextPrefix(value, std::max(0, room));
  std::string scale = absl::StrCat(shown, shown.empty() ? "" : ": ", low, " ", ramp.All(), " ", high, "\n");
  if (rows.empty()) return scale;
  const bool one_line = TextWidth(rows) + 3 + TextWidth(shown) + 2 + ramp_columns <= style.columns;
  return absl::StrCat(base::TextPrefix(rows, style.columns), one_line ? "   " : "\n", scale);
}

// Neighbours of one level share their colour's escape sequence.
std::string CellRow(const HeatView& view, int row, int width, const Ramp& ramp) {
  if (view.cells.empty()) return Spaces(width);
  const int columns = static_cast<int>(view.columns), of_cell = width / columns;
  const auto level = [&](int column) { return ramp.LevelOf(view.cells[row * columns + column]); };
  std::string text;
  for (int begin = 0, end = 0; begin < columns; begin = end) {
    while (end < columns && level(end) == level(begin)) ++end;
    text += ramp.Characters(level(begin), (end - begin) * of_cell);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> HeatText(const HeatMap& map, const TextStyle& style) {
  // A frame is never narrower: the last row has the longest label.
  const int gutter = TextWidth(base::FormatCount(static_cast<std::int64_t>(RowsOf(map))));
  PLAIT_ASSIGN_OR_RETURN(const HeatView view,
                         HeatViewOf(map, style.columns - gutter - 2, style.rows - kTextFrameRows));
  const TextFrame frame(view.x, view.y, style,
                        {.height = std::max(1, static_cast<int>(view.rows)),
                         .width_step = std::max(1, static_cast<int>(view.columns))});
  const Ramp ramp(style);
  std::string text =
      absl::StrCat(frame.Centred(map.title), Heading(map, view, ramp, style), frame.Border(true, {}));
  for (int row = frame.height() - 1; row >= 0; --row) {
    text += frame.Line(row, CellRow(view, row, frame.width(), ramp));
  }
  return absl::StrCat(text, frame.Border(false, {}), frame.TickLabels(), frame.Centred(map.x_label),
                      frame.Notes(view.notes));
}

}  // namespace plait::data
