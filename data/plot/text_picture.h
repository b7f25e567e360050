// A plot as lines of characters: gnuplot draws the curves as pixels, which are folded into characters; axes,
// labels and notes are set around them. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_TEXT_PICTURE_H_
#define PLAIT_DATA_PLOT_TEXT_PICTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/plot/curve.h"
#include "data/plot/gnuplot.h"
#include "data/plot/plot.h"
#include "data/plot/raster.h"

namespace plait::data {

class TextPicture {
 public:
  // `plot` must outlive the picture. Errors as ViewOf.
  static absl::StatusOr<TextPicture> Create(const Plot& plot, const TextStyle& style);

  // One page per curve for gnuplot, and the text from what it drew.
  std::vector<GnuplotPage> Pages() const;
  absl::StatusOr<std::string> Assemble(absl::Span<const std::string> drawn) const;

 private:
  TextPicture(const Plot& plot, const TextStyle& style) : plot_(&plot), style_(style) {}
  void LayOut();
  bool by_character() const;
  std::string Coloured(const std::string& text, std::size_t series) const;
  std::string Character(std::size_t series) const;
  std::string Plain(const std::string& text) const;
  std::string Centred(const std::string& text) const;
  std::string Heading() const;
  std::string Body(const std::vector<Raster>& rasters) const;
  struct Glyph {
    std::string text;
    std::size_t series = 0;  // whose colour; of no meaning for a space
  };
  Glyph GlyphAt(const std::vector<Raster>& rasters, int column, int row) const;
  std::string Row(const std::vector<Raster>& rasters, int row) const;
  std::string Border(bool top) const;
  std::string TickLabels() const;
  std::string Notes() const;
  int ColumnOf(double position) const;
  int RowOf(double position) const;

  const Plot* plot_;
  TextStyle style_;
  View view_;
  Cell cell_;
  int gutter_ = 0;  // columns left of the frame
  int width_ = 0;   // of the frame's inside, in characters
  int height_ = 0;
  std::vector<Tick> x_ticks_, y_ticks_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_TEXT_PICTURE_H_
