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

// Okabe and Ito's palette for colour-blind readers, the stronger colours first.
constexpr std::array<const char*, 7> kPalette = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000"};

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
  void Add(const Curve& curve, std::size_t index) {
    const std::string colour = absl::StrCat(" lc rgb '", kPalette[index % kPalette.size()], "'");
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
    // Once all colours are used, dashes distinguish the lines.
    const int dash = 1 + static_cast<int>(index / kPalette.size()) % 4;
    const std::string title = absl::StrCat(" title ", Quoted(LegendName(curve.name)));
    if (!points.empty()) AddBlock(block, points);
    if (band) {
      drawn_.push_back(block + " using 1:3:4 with filledcurves fs transparent solid 0.22 noborder" + colour +
                       " notitle");
    }
    drawn_.push_back(absl::StrCat(points.empty() ? "NaN" : block, " with ",
                                  curve.few_points ? "linespoints pt 7 ps 0.35" : "lines", " lw 1.5 dt ",
                                  dash, colour, title));
    const auto add_points = [&](const char* name, const std::string& at, const char* type) {
      if (at.empty()) return;
      AddBlock(block + name, at);
      drawn_.push_back(absl::StrCat(block, name, " with points pt ", type, colour, " notitle"));
    };
    add_points("lonely", curve.few_points ? "" : lonely, "7 ps 0.35");
    add_points("above", AtHeight(curve.above, 1), "9 ps 0.7");
    add_points("below", AtHeight(curve.below, 0), "11 ps 0.7");
    add_points("nan", AtHeight(curve.not_a_number, 0), "2 ps 0.7");
  }

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

  std::string blocks_;
  std::vector<std::string> drawn_;
};

Drawing DrawingOf(const View& view) {
  Drawing drawing;
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
  return {Terminal(format), absl::StrCat(FrameCommands(view.x, view.y, kFileColours, 8, 8),
                                         Lettering(plot, view, format), DrawingOf(view).Commands())};
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

}  // namespace plait::data
