// Everything around a text plot: title, frame, ticks, labels and notes. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_TEXT_FRAME_H_
#define PLAIT_DATA_PLOT_TEXT_FRAME_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "data/plot/axis.h"
#include "data/plot/plot.h"

namespace plait::data {

// Number of lines around the plot area: title, heading, two of the frame, tick labels, x label.
inline constexpr int kTextFrameRows = 6;

std::string Spaces(int count);

// Printable text; ASCII only without style.utf8.
std::string PlainText(const std::string& text, const TextStyle& style);

// In one of the terminal's 256 colours, if style.colour.
std::string ColouredText(const std::string& text, int colour, const TextStyle& style);

struct TextFrameSize {
  int height = 1;                       // lines of the plot area
  int cell_columns = 1, cell_rows = 1;  // pixels per character
  int width_step = 1;                   // the width of the plot area is a multiple of it
};

// Axes and style must outlive it. Positions are as in Axis: 0 to 1.
class TextFrame {
 public:
  TextFrame(const Axis& x, const Axis& y, const TextStyle& style, const TextFrameSize& size);

  int width() const { return width_; }  // of the plot area, in characters
  int height() const { return size_.height; }

  // Each ends in a newline.
  std::string Centred(const std::string& text) const;
  std::string Line(int row, const std::string& inside) const;  // row 0 is the lowest one
  std::string Border(bool top, absl::Span<const std::pair<double, const char*>> marks) const;
  std::string TickLabels() const;
  std::string Notes(const std::vector<std::string>& notes) const;

 private:
  int Column(double position) const;
  int Row(double position) const;

  const Axis& x_;
  const Axis& y_;
  const TextStyle& style_;
  TextFrameSize size_;
  int width_ = 0;
  int gutter_ = 0;  // columns left of the frame
  std::vector<Tick> x_ticks_, y_ticks_;
};

// Index of the pixel, of 0..pixels-1, at a position.
int PixelAt(double position, int pixels);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_TEXT_FRAME_H_
