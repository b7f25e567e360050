#include "data/plot/picture.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"

namespace plait::data {
namespace {

// Of a page's chart, as fractions of its size.
constexpr double kLeft = 0.16, kRight = 0.96, kTop = 0.95, kBottom = 0.13;

// Okabe and Ito's palette for colour-blind readers, the stronger colours first.
constexpr std::array<const char*, 7> kPalette = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000"};

constexpr int kFirstPageSeries = 16;

std::string SeriesColour(std::size_t series, PictureFormat format) {
  if (format == PictureFormat::kPage)
    return absl::StrFormat("#0000%02x", kFirstPageSeries + series % kPageColourCount);
  return kPalette[series % kPalette.size()];
}

std::string Lettering(const Plot& plot, const View& view, PictureFormat format) {
  return LetterCommands({.title = plot.title,
                         .x_label = AxisLabel(plot.x_label, plot.x_unit),
                         .y_label = AxisLabel(plot.y_label, plot.unit),
                         .legend = view.curves.size() > 1},
                        view.notes, format);
}

// gnuplot leaves entries out of a legend that would be wider than the picture.
std::string LegendName(const std::string& name) {
  constexpr int kLongest = 48;
  if (base::TextWidth(name) <= kLongest) return name;
  return absl::StrCat(base::TextPrefix(name, kLongest - 3), "...");
}

// What gnuplot is to draw: named blocks of data, and how to draw each of them.
class Drawing {
 public:
  explicit Drawing(PictureFormat format) : format_(format) {}

  void Add(const Curve& curve, std::size_t index) {
    const std::string colour = absl::StrCat(" lc rgb '", SeriesColour(index, format_), "'");
    const std::string block = absl::StrCat("$c", index);
    std::string points, lonely;
    for (const auto& stretch : curve.stretches) {
      for (const CurvePoint& p : stretch) {
        // Bands are filled by gnuplot without regard to the frame.
        absl::StrAppendFormat(&points, "%.7g %.7g %.7g %.7g\n", p.x, p.middle, std::clamp(p.low, 0.0, 1.0),
                              std::clamp(p.high, 0.0, 1.0));
      }
      points += "\n";
      if (stretch.size() == 1) absl::StrAppendFormat(&lonely, "%.7g %.7g\n", stretch[0].x, stretch[0].middle);
    }
    const bool band = curve.values_per_point > 1 && !points.empty();
    // Where the colours are used up, dashes tell lines apart.
    const int dash = 1 + static_cast<int>(index / kPalette.size()) % 4;
    const std::string title = absl::StrCat(" title ", Quoted(LegendName(curve.name)));
    if (!points.empty()) AddBlock(block, points);
    if (band) {
      Draw(block + " using 1:3:4 with filledcurves fs transparent solid 0.22 noborder" + colour + " notitle",
           index, "band");
    }
    Draw(absl::StrCat(points.empty() ? "NaN" : block, " with ",
                      curve.few_points ? "linespoints pt 7 ps 0.35" : "lines", " lw 1.5 dt ", dash, colour,
                      title),
         index, "series");
    const auto add_points = [&](const char* name, const std::string& at, const char* type, const char* kind) {
      if (at.empty()) return;
      AddBlock(block + name, at);
      Draw(absl::StrCat(block, name, " with points pt ", type, colour, " notitle"), index, kind);
    };
    add_points("lonely", curve.few_points ? "" : lonely, "7 ps 0.35", "dots");
    add_points("above", AtHeight(curve.above, 1), "9 ps 0.7", "marks");
    add_points("below", AtHeight(curve.below, 0), "11 ps 0.7", "marks");
    add_points("nan", AtHeight(curve.not_a_number, 0), "2 ps 0.7", "marks");
  }

  const std::vector<std::pair<std::size_t, const char*>>& kinds() const { return kinds_; }
  std::string Commands() const {
    return absl::StrCat(blocks_, "plot ", drawn_.empty() ? "NaN notitle" : absl::StrJoin(drawn_, ", "));
  }

 private:
  static std::string AtHeight(const std::vector<double>& marks, int y) {
    std::string points;
    for (const double x : marks) absl::StrAppendFormat(&points, "%.7g %d\n", x, y);
    return points;
  }
  void AddBlock(const std::string& name, const std::string& points) {
    absl::StrAppend(&blocks_, name, " << END_OF_DATA\n", points, "END_OF_DATA\n");
  }
  void Draw(std::string what, std::size_t series, const char* kind) {
    drawn_.push_back(std::move(what));
    kinds_.emplace_back(series, kind);
  }

  PictureFormat format_;
  std::string blocks_;
  std::vector<std::string> drawn_;
  std::vector<std::pair<std::size_t, const char*>> kinds_;  // of what is drawn: series, class in a page
};

Drawing DrawingOf(const View& view, PictureFormat format) {
  Drawing drawing(format);
  for (std::size_t i = 0; i < view.curves.size(); ++i) drawing.Add(view.curves[i], i);
  return drawing;
}

// gnuplot names what it draws, "gnuplot_plot_1", in titles that browsers show under the pointer.
std::string WithoutInnerTitles(absl::string_view svg) {
  constexpr absl::string_view kOpen = "<title>gnuplot_plot_", kClose = "</title>";
  std::string kept;
  for (std::size_t at; (at = svg.find(kOpen)) != absl::string_view::npos;) {
    absl::StrAppend(&kept, svg.substr(0, at));
    svg.remove_prefix(std::min(svg.size(), svg.find(kClose, at) + kClose.size()));
  }
  return absl::StrCat(kept, svg);
}

// Placeholders of a page's colours, and its CSS variables.
std::vector<std::pair<std::string, std::string>> PageVariables() {
  std::vector<std::pair<std::string, std::string>> changes;
  const auto colour = [&](int number, const std::string& variable) {
    changes.emplace_back(absl::StrFormat("rgb(  0,   0, %3d)", number),
                         absl::StrCat("var(--", variable, ")"));
    changes.emplace_back(absl::StrFormat("rgb(0,0,%d)", number), absl::StrCat("var(--", variable, ")"));
  };
  colour(1, "soft");
  colour(2, "line");
  colour(3, "grid");
  for (int i = 0; i < kPageColourCount; ++i) colour(kFirstPageSeries + i, absl::StrCat("c", i));
  return changes;
}

// Of the <svg> element.
std::string Inside(const std::string& svg) {
  const std::size_t begin = std::min(svg.find("<g"), svg.size()),
                    end = std::min(svg.rfind("</svg>"), svg.size());
  return svg.substr(begin, end - begin);
}

}  // namespace

GnuplotPage PicturePage(const Plot& plot, const View& view, PictureFormat format) {
  std::string commands;
  if (format == PictureFormat::kPage) {
    commands = FrameCommands(view.x, view.y, kPageColours, 5, 5);
    absl::StrAppendFormat(&commands,
                          "unset key\nset lmargin at screen %g\nset rmargin at screen %g\n"
                          "set tmargin at screen %g\nset bmargin at screen %g\n",
                          kLeft, kRight, kTop, kBottom);
  } else {
    commands = FrameCommands(view.x, view.y, kFileColours, 8, 8) + Lettering(plot, view, format);
  }
  return {Terminal(format), commands + DrawingOf(view, format).Commands()};
}

std::string FileSvg(absl::string_view svg, const std::string& name, const std::string& title) {
  svg.remove_prefix(std::min(svg.find("<svg"), svg.size()));
  const std::string prefix = name + "_";
  return absl::StrReplaceAll(
      WithoutInnerTitles(svg),
      {{"<title>Gnuplot</title>", absl::StrCat("<title>", base::EscapeHtml(title), "</title>")},
       // The cells of a heat map have sharp edges.
       {"<image ", "<image style=\"image-rendering:pixelated\" "},
       {"font-family=\"DejaVu Sans\"", "font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\""},
       {"'gpDot'", "'" + prefix + "gpDot'"},
       {"'gpPt", "'" + prefix + "gpPt"},
       {"'#gpDot'", "'#" + prefix + "gpDot'"},
       {"'#gpPt", "'#" + prefix + "gpPt"},
       {"id='textbox'", "id='" + prefix + "textbox'"},
       {"id='greybox'", "id='" + prefix + "greybox'"},
       {"\"gnuplot_plot_", "\"" + prefix + "plot_"},
       {"\"gnuplot_canvas\"", "\"" + prefix + "canvas\""}});
}

std::string PageHeatSvg(absl::string_view svg, const std::string& title, const std::string& name) {
  return absl::StrFormat("<svg class=\"heat\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">%s</svg>",
                         kPageChartWidth, kPageChartHeight, base::EscapeHtml(title),
                         Inside(absl::StrReplaceAll(FileSvg(svg, name, ""), PageVariables())));
}

std::string PageSvg(absl::string_view svg, const Plot& plot, const View& view, const std::string& name) {
  std::vector<std::pair<std::string, std::string>> changes = PageVariables();
  const std::vector<std::pair<std::size_t, const char*>> kinds =
      DrawingOf(view, PictureFormat::kPage).kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& [series, kind] = kinds[i];
    changes.emplace_back(
        absl::StrCat("<g id=\"", name, "_plot_", i + 1, "\""),
        absl::StrCat("<g class=\"", kind, " c", series % kPageColourCount, "\" data-name=\"",
                     base::EscapeHtml(view.curves[series].name), "\" data-values-per-point=\"",
                     view.curves[series].values_per_point, "\""));
  }
  const std::string inside = Inside(absl::StrReplaceAll(FileSvg(svg, name, ""), changes));
  const double top = (1 - kTop) * kPageChartHeight, height = (kTop - kBottom) * kPageChartHeight;
  return absl::StrFormat(
      "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\" data-left=\"%g\" "
      "data-width=\"%g\" data-top=\"%g\" data-height=\"%g\" data-x0=\"%.9g\" data-x1=\"%.9g\" "
      "data-y0=\"%.9g\" data-y1=\"%.9g\" data-unit=\"%s\">%s<line class=\"cursor\" y1=\"%g\" "
      "y2=\"%g\"/></svg>",
      kPageChartWidth, kPageChartHeight, base::EscapeHtml(plot.title), kLeft * kPageChartWidth,
      (kRight - kLeft) * kPageChartWidth, top, height, view.x.low, view.x.high, view.y.low, view.y.high,
      base::EscapeHtml(view.y.unit), inside, top, top + height);
}

}  // namespace plait::data
