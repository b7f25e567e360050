#include "data/plot/text_frame.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"

namespace plait::data {

using base::TextWidth;

std::string Spaces(int count) { return std::string(std::max(0, count), ' '); }

std::string PlainText(const std::string& text, const TextStyle& style) {
  return style.utf8 ? base::Printable(text) : base::AsciiOnly(base::Printable(text));
}

std::string ColouredText(const std::string& text, int colour, const TextStyle& style) {
  if (!style.colour) return text;
  return absl::StrFormat("\x1b[38;5;%dm%s\x1b[0m", colour, text);
}

int PixelAt(double position, int pixels) { return static_cast<int>(std::lround(position * (pixels - 1))); }

TextFrame::TextFrame(const Axis& x, const Axis& y, const TextStyle& style, const TextFrameSize& size)
    : x_(x),
      y_(y),
      style_(style),
      size_(size),
      // Rows of a heat map have a label each where they fit.
      y_ticks_(Ticks(y, std::max(2, y.whole ? size.height : size.height / 3 + 1))) {
  for (Tick& tick : y_ticks_) {
    tick.label = PlainText(tick.label, style);
    gutter_ = std::max(gutter_, TextWidth(tick.label));
  }
  width_ = style.columns - gutter_ - 2;
  width_ -= width_ % size.width_step;
  int needed = width_ + 1;
  for (int most = std::max(2, width_ / 6); most >= 2 && needed > width_; --most) {
    x_ticks_ = Ticks(x, most);
    needed = 0;
    for (const Tick& tick : x_ticks_) needed += TextWidth(tick.label) + 4;
  }
}

int TextFrame::Column(double position) const {
  return PixelAt(std::clamp(position, 0.0, 1.0), width_ * size_.cell_columns) / size_.cell_columns;
}

int TextFrame::Row(double position) const {
  return PixelAt(position, size_.height * size_.cell_rows) / size_.cell_rows;
}

// Over the inside of the frame, if it fits there.
std::string TextFrame::Centred(const std::string& text) const {
  const std::string plain = PlainText(text, style_);
  const absl::string_view shown = base::TextPrefix(plain, style_.columns);
  const int middle = gutter_ + 1 + (width_ - TextWidth(shown)) / 2;
  const std::string line = Spaces(std::min(middle, style_.columns - TextWidth(shown)));
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(absl::StrCat(line, shown)), "\n");
}

std::string TextFrame::Line(int row, const std::string& inside) const {
  const auto tick = std::find_if(y_ticks_.begin(), y_ticks_.end(),
                                 [&](const Tick& t) { return Row(y_.Position(t.value)) == row; });
  const bool is_tick = tick != y_ticks_.end();
  const std::string label = is_tick ? tick->label : "", side = style_.utf8 ? "│" : "|";
  return absl::StrCat(Spaces(gutter_ - TextWidth(label)), label,
                      !is_tick      ? side
                      : style_.utf8 ? "┤"
                                    : "+",
                      inside, side, "\n");
}

std::string TextFrame::Border(bool top, absl::Span<const std::pair<double, const char*>> marks) const {
  std::vector<std::string> line(width_, style_.utf8 ? "─" : "-");
  for (const Tick& tick : x_ticks_) {
    if (!top) line[Column(x_.Position(tick.value))] = style_.utf8 ? "┬" : "+";
  }
  for (const auto& [position, mark] : marks) line[Column(position)] = mark;
  std::string text = Spaces(gutter_) + (style_.utf8 ? (top ? "┌" : "└") : "+");
  for (const std::string& character : line) text += character;
  return absl::StrCat(text, style_.utf8 ? (top ? "┐" : "┘") : "+", "\n");
}

std::string TextFrame::TickLabels() const {
  std::string line;
  for (const Tick& tick : x_ticks_) {
    const std::string label = PlainText(tick.label, style_);
    const int length = TextWidth(label), used = TextWidth(line);
    const int middle = gutter_ + 1 + Column(x_.Position(tick.value));
    const int begin = std::min(middle - length / 2, style_.columns - length);
    if (begin < used + (line.empty() ? 0 : 1)) continue;
    absl::StrAppend(&line, Spaces(begin - used), label);
  }
  return line + "\n";
}

std::string TextFrame::Notes(const std::vector<std::string>& notes) const {
  std::string text;
  for (const std::string& note : notes) {
    for (const std::string& line : base::WrapText(PlainText(note, style_), style_.columns, 2)) {
      absl::StrAppend(&text, line, "\n");
    }
  }
  return text;
}

}  // namespace plait::data
