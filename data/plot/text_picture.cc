#include "data/plot/text_picture.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr int kLeastColumns = 40, kLeastRows = 9;
// Lines around the curves: title, heading, two of the frame, tick labels, label of x.
constexpr int kOtherRows = 6;
// Okabe and Ito's palette, told apart also by colour-blind readers, as near as 256 colours come.
constexpr std::array<int, 6> kColours = {33, 208, 36, 175, 220, 81};
constexpr absl::string_view kCharacters = "*+ox#@%&";

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Columns on a terminal, for letters that take one.
int Columns(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string Shortened(const std::string& text, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!IsContinuation(text[i]) && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

std::string Spaces(int count) { return std::string(static_cast<std::size_t>(std::max(0, count)), ' '); }

std::vector<std::string> Wrapped(const std::string& text, int columns) {
  std::vector<std::string> lines(1);
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!lines.back().empty() && Columns(lines.back()) + 1 + Columns(word) > columns) {
      lines.push_back("  ");  // goes on below
    } else if (!lines.back().empty()) {
      lines.back() += ' ';
    }
    lines.back() += Shortened(std::string(word), columns - 2);
  }
  return lines;
}

std::string TrimmedRight(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// The pixel of a position: 0 is the first, 1 the last. As gnuplot rounds.
int Pixel(double position, int pixels) {
  return static_cast<int>(std::lround(std::clamp(position, 0.0, 1.0) * (pixels - 1)));
}

}  // namespace

absl::StatusOr<TextPicture> TextPicture::Create(const Plot& plot, const TextStyle& style) {
  TextPicture picture(plot, style);
  picture.style_.columns = std::max(style.columns, kLeastColumns);
  picture.style_.rows = std::max(style.rows, kLeastRows);
  PLAIT_ASSIGN_OR_RETURN(picture.view_, ViewOf(plot, 2 * picture.style_.columns));
  picture.LayOut();
  return picture;
}

void TextPicture::LayOut() {
  cell_ = by_character() ? kWhole : style_.utf8 ? kQuadrants : kAsciiThirds;
  height_ = style_.rows - kOtherRows;
  y_ticks_ = Ticks(view_.y, std::max(2, height_ / 3 + 1));
  for (const Tick& tick : y_ticks_) gutter_ = std::max(gutter_, Columns(tick.label));
  width_ = style_.columns - gutter_ - 2;
  for (int most = std::max(2, width_ / 6); most >= 2; --most) {
    x_ticks_ = Ticks(view_.x, most);
    int needed = 0;
    for (const Tick& tick : x_ticks_) needed += Columns(tick.label) + 4;
    if (needed <= width_) break;
  }
}

// Several series without colours are several characters.
bool TextPicture::by_character() const { return view_.curves.size() > 1 && !(style_.colour && style_.utf8); }

std::string TextPicture::Coloured(const std::string& text, std::size_t series) const {
  if (!style_.colour) return text;
  return absl::StrFormat("\x1b[38;5;%dm%s\x1b[0m", kColours[series % kColours.size()], text);
}

std::string TextPicture::Character(std::size_t series) const {
  return std::string(1, kCharacters[series % kCharacters.size()]);
}

// Text of the caller's, as the output can show it.
std::string TextPicture::Plain(const std::string& text) const {
  std::string printable = Printable(text);
  if (style_.utf8) return printable;
  std::string ascii;
  for (const char c : printable) {
    if (!IsContinuation(c)) ascii += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  }
  return ascii;
}

// Over the inside of the frame, if it fits there.
std::string TextPicture::Centred(const std::string& text) const {
  const std::string shown = Shortened(Plain(text), style_.columns);
  const int middle = gutter_ + 1 + (width_ - Columns(shown)) / 2;
  return Spaces(std::min(middle, style_.columns - Columns(shown))) + shown;
}

// What y is, and the legend.
std::string TextPicture::Heading() const {
  std::string line = Shortened(Plain(Labelled(plot_->y_label, plot_->unit)), style_.columns);
  int used = Columns(line);
  if (view_.curves.size() < 2) return line + "\n";
  std::string text;
  for (std::size_t i = 0; i < view_.curves.size(); ++i) {
    const std::string name = Shortened(Plain(view_.curves[i].name), style_.columns - 6);
    const std::string mark = by_character() ? Character(i) : "▄▄";
    const int needed = Columns(mark) + 1 + Columns(name);
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

int TextPicture::ColumnOf(double position) const {
  return Pixel(position, width_ * cell_.columns) / cell_.columns;
}

int TextPicture::RowOf(double position) const { return Pixel(position, height_ * cell_.rows) / cell_.rows; }

// The curve with most pixels in the cell gives the colour, all of them the shape.
TextPicture::Glyph TextPicture::GlyphAt(const std::vector<Raster>& rasters, int column, int row) const {
  unsigned all = 0;
  std::size_t foremost = 0;
  int most = 0;
  for (std::size_t i = 0; i < rasters.size(); ++i) {
    const unsigned bits = CellBits(rasters[i], column * cell_.columns, row * cell_.rows, cell_);
    all |= bits;
    if (std::popcount(bits) > most) {
      most = std::popcount(bits);
      foremost = i;
    }
  }
  if (all == 0) return {" "};
  if (by_character()) return {Character(foremost), foremost};
  if (style_.utf8) return {std::string(QuadrantCharacter(all)), foremost};
  return {std::string(1, AsciiCharacter(all)), foremost};
}

// A colour is set once for neighbours that share it; spaces have none of their own.
std::string TextPicture::Row(const std::vector<Raster>& rasters, int row) const {
  std::string text;
  Glyph run;
  for (int column = 0; column < width_; ++column) {
    const Glyph glyph = GlyphAt(rasters, column, row);
    const bool blank_run = run.text.find_first_not_of(' ') == std::string::npos;
    if (blank_run || (glyph.text != " " && glyph.series != run.series)) {
      absl::StrAppend(&text, blank_run ? run.text : Coloured(run.text, run.series));
      run = glyph;
    } else {
      run.text += glyph.text;
    }
  }
  return text +
         (run.text.find_first_not_of(' ') == std::string::npos ? run.text : Coloured(run.text, run.series));
}

std::string TextPicture::Body(const std::vector<Raster>& rasters) const {
  const std::string side = style_.utf8 ? "│" : "|", tick_side = style_.utf8 ? "┤" : "+";
  std::string text;
  for (int row = height_ - 1; row >= 0; --row) {
    const auto tick = std::find_if(y_ticks_.begin(), y_ticks_.end(),
                                   [&](const Tick& t) { return RowOf(view_.y.Position(t.value)) == row; });
    const std::string label = tick == y_ticks_.end() ? "" : tick->label;
    absl::StrAppend(&text, Spaces(gutter_ - Columns(label)), label, label.empty() ? side : tick_side,
                    Row(rasters, row), side, "\n");
  }
  return text;
}

// The edges of the frame carry the marks of what has no place within.
std::string TextPicture::Border(bool top) const {
  std::vector<std::string> line(static_cast<std::size_t>(width_), style_.utf8 ? "─" : "-");
  const auto mark = [&](double position, const char* utf8, const char* ascii) {
    line[static_cast<std::size_t>(ColumnOf(position))] = style_.utf8 ? utf8 : ascii;
  };
  if (!top) {
    for (const Tick& tick : x_ticks_) mark(view_.x.Position(tick.value), "┬", "+");
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

std::string TextPicture::TickLabels() const {
  std::string line;
  for (const Tick& tick : x_ticks_) {
    const int length = static_cast<int>(tick.label.size());
    const int middle = gutter_ + 1 + ColumnOf(view_.x.Position(tick.value));
    const int begin = std::min(middle - length / 2, style_.columns - length);
    const int used = static_cast<int>(line.size());
    if (begin < used + (line.empty() ? 0 : 1)) continue;
    absl::StrAppend(&line, Spaces(begin - used), tick.label);
  }
  return line + "\n";
}

std::string TextPicture::Notes() const {
  std::string text;
  for (const std::string& note : view_.notes) {
    for (const std::string& line : Wrapped(Plain(note), style_.columns)) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::vector<GnuplotPage> TextPicture::Pages() const {
  std::vector<GnuplotPage> pages;
  for (const Curve& curve : view_.curves) {
    pages.push_back(RasterPage(curve, width_ * cell_.columns, height_ * cell_.rows));
  }
  return pages;
}

absl::StatusOr<std::string> TextPicture::Assemble(absl::Span<const std::string> drawn) const {
  std::vector<Raster> rasters;
  for (const std::string& page : drawn) {
    PLAIT_ASSIGN_OR_RETURN(Raster raster,
                           Raster::FromPbm(page, width_ * cell_.columns, height_ * cell_.rows));
    rasters.push_back(std::move(raster));
  }
  const std::string x_label = Centred(Labelled(plot_->x_label, plot_->x_unit));
  return absl::StrCat(TrimmedRight(Centred(plot_->title)), "\n", Heading(), Border(true), Body(rasters),
                      Border(false), TickLabels(), TrimmedRight(x_label), "\n", Notes());
}

}  // namespace plait::data
