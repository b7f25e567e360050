#include "tools/report_pages/line_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/report_pages/chart_axis.h"
#include "tools/report_pages/html_text.h"
#include "tools/report_text/number_text.h"

namespace plait::report {
namespace {

// Of the drawing, in its own units, which are about a pixel on a phone.
constexpr double kWidth = 360, kHeight = 210;
constexpr double kLeft = 58, kRight = 12, kTop = 12, kBottom = 26;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
// Points closer than this cannot be told apart, so a dot on each would be a thick line.
constexpr std::size_t kMostDots = 30;
// Marks of a kind on one edge.
constexpr double kMarkSpacing = 3;
constexpr double kRoom = 0.015;

struct Shown {
  const RunNumbers* run;
  const MetricNumbers* numbers;
  int colour;
};

struct View {
  std::vector<Shown> series;
  ChartAxis x, y;
  std::string units;

  double PlaceX(double draw) const { return x.Position(draw) * kPlotWidth; }
  // Downwards; far values stay near the picture.
  double PlaceY(double value) const { return std::clamp(1 - y.Position(value), -1.0, 2.0) * kPlotHeight; }
};

View ViewOf(absl::Span<const RunNumbers> runs, const std::string& metric) {
  View view;
  std::vector<const Summary*> summaries;
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MetricNumbers* numbers = runs[i].Find(metric);
    if (numbers == nullptr) continue;
    view.series.push_back({&runs[i], numbers, static_cast<int>(i % kRunColours)});
    summaries.push_back(&numbers->summary);
    view.units = numbers->metric.units;
    first = std::min(first, static_cast<double>(runs[i].skipped));
    last = std::max(last, static_cast<double>(runs[i].draws - 1));
  }
  view.y = RobustAxis(summaries);
  // A little room, so that the first and the last point are not cut off.
  const double room = last > first ? kRoom * (last - first) : 0.5;
  view.x = {first - room, last + room};
  return view;
}

std::string Point(double x, double y) { return absl::StrCat(Decimal(x), ",", Decimal(y)); }

// Consecutive points without a gap between them.
std::vector<absl::Span<const CurvePoint>> Stretches(const Curve& curve) {
  std::vector<absl::Span<const CurvePoint>> stretches;
  const absl::Span<const CurvePoint> all = curve.points;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    if (i < all.size() && !std::isnan(all[i].middle)) continue;
    if (i > begin) stretches.push_back(all.subspan(begin, i - begin));
    begin = i + 1;
  }
  return stretches;
}

std::string Band(const View& view, absl::Span<const CurvePoint> stretch) {
  std::string points;
  for (const CurvePoint& point : stretch) {
    absl::StrAppend(&points, Point(view.PlaceX(point.draw), view.PlaceY(point.high)), " ");
  }
  for (auto point = stretch.rbegin(); point != stretch.rend(); ++point) {
    absl::StrAppend(&points, Point(view.PlaceX(point->draw), view.PlaceY(point->low)), " ");
  }
  return absl::StrCat("<polygon class=\"band\" points=\"", points, "\"/>");
}

std::string Line(const View& view, absl::Span<const CurvePoint> stretch, bool dots) {
  std::string points, circles;
  for (const CurvePoint& point : stretch) {
    const double x = view.PlaceX(point.draw), y = view.PlaceY(point.middle);
    absl::StrAppend(&points, Point(x, y), " ");
    if (dots || stretch.size() == 1) {
      absl::StrAppend(&circles, "<circle cx=\"", Decimal(x), "\" cy=\"", Decimal(y), "\" r=\"2\"/>");
    }
  }
  return absl::StrCat("<polyline points=\"", points, "\"/>", circles);
}

std::string SeriesSvg(const View& view, const Shown& shown) {
  const Curve& curve = shown.numbers->curve;
  std::string svg =
      absl::StrCat("<g class=\"series c", shown.colour, "\" data-name=\"", Html(shown.run->label),
                   "\" data-draws-per-point=\"", curve.draws_per_point, "\">");
  for (const auto& stretch : Stretches(curve)) {
    if (curve.draws_per_point > 1) svg += Band(view, stretch);
    svg += Line(view, stretch, curve.points.size() <= kMostDots);
  }
  return svg + "</g>";
}

// Triangles where values are beyond an edge, crosses at the bottom for NaN; none too close to the one before.
class EdgeMarks {
 public:
  explicit EdgeMarks(const View& view) : view_(view) {}

  std::string Of(const Shown& shown) {
    double above = -kMarkSpacing, below = above, nan = above;
    svg_ = absl::StrCat("<g class=\"marks c", shown.colour, "\">");
    for (const CurvePoint& point : shown.numbers->curve.points) {
      if (point.high > view_.y.high) Add(point.draw, above, "M%x,2l-3,6h6z");
      if (point.low < view_.y.low) Add(point.draw, below, "M%x,bl-3,-6h6z");
    }
    above = below = -kMarkSpacing;
    for (const Mark& mark : shown.numbers->curve.marks) {
      if (mark.kind == MarkKind::kNaN) Add(mark.draw, nan, "M%x,bm-3,-7l6,6m0,-6l-6,6");
      if (mark.kind == MarkKind::kPositiveInfinity) Add(mark.draw, above, "M%x,2l-3,6h6z");
      if (mark.kind == MarkKind::kNegativeInfinity) Add(mark.draw, below, "M%x,bl-3,-6h6z");
    }
    return svg_ + "</g>";
  }

 private:
  // In `shape`, %x is the place and b the bottom.
  void Add(double draw, double& previous, absl::string_view shape) {
    const double x = view_.PlaceX(draw);
    if (x - previous < kMarkSpacing) return;
    previous = x;
    std::string path;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == '%') {
        absl::StrAppend(&path, Decimal(x));
        ++i;
      } else if (shape[i] == 'b') {
        absl::StrAppend(&path, Decimal(kPlotHeight - 1));
      } else {
        path += shape[i];
      }
    }
    absl::StrAppend(&svg_, "<path d=\"", path, "\"/>");
  }

  const View& view_;
  std::string svg_;
};

std::string AxesSvg(const View& view) {
  std::string svg;
  for (const ChartTick& tick : ChartTicks(view.y, view.units, 5)) {
    const std::string y = Decimal(kTop + view.PlaceY(tick.value));
    absl::StrAppend(&svg, "<line class=\"grid\" x1=\"", Decimal(kLeft), "\" x2=\"", Decimal(kWidth - kRight),
                    "\" y1=\"", y, "\" y2=\"", y, "\"/><text x=\"", Decimal(kLeft - 6), "\" y=\"", y,
                    "\" dy=\"0.32em\" text-anchor=\"end\">", Html(tick.label), "</text>");
  }
  for (const ChartTick& tick : ChartTicks(view.x, "", 6)) {
    // There is no draw between two others.
    if (tick.value != std::round(tick.value)) continue;
    const double x = kLeft + view.PlaceX(tick.value);
    const char* anchor = x > kWidth - kRight - 14 ? "end" : "middle";
    absl::StrAppend(&svg, "<text x=\"", Decimal(x), "\" y=\"", Decimal(kHeight - 8), "\" text-anchor=\"",
                    anchor, "\">", Html(tick.label), "</text>");
  }
  return svg;
}

std::string Svg(const View& view, const std::string& metric) {
  std::string title = absl::StrCat(metric, " by draw");
  for (const Shown& shown : view.series) {
    absl::StrAppend(&title, "; ", shown.run->label, ": median ",
                    report::Shown(shown.numbers->summary.median, view.units), ", from ",
                    report::Shown(shown.numbers->summary.min, view.units), " to ",
                    report::Shown(shown.numbers->summary.max, view.units));
  }
  std::string svg =
      absl::StrCat("<svg class=\"chart\" viewBox=\"0 0 ", Decimal(kWidth), " ", Decimal(kHeight),
                   "\" role=\"img\" aria-label=\"", Html(title), "\" data-left=\"", Decimal(kLeft),
                   "\" data-width=\"", Decimal(kPlotWidth), "\" data-height=\"", Decimal(kPlotHeight),
                   "\" data-x0=\"", view.x.low, "\" data-x1=\"", view.x.high, "\" data-y0=\"", view.y.low,
                   "\" data-y1=\"", view.y.high, "\" data-unit=\"", Html(view.units), "\">");
  svg += AxesSvg(view);
  // The inner drawing cuts off what is outside of the axes.
  absl::StrAppend(&svg, "<svg x=\"", Decimal(kLeft), "\" y=\"", Decimal(kTop), "\" width=\"",
                  Decimal(kPlotWidth), "\" height=\"", Decimal(kPlotHeight), "\">");
  for (const Shown& shown : view.series) svg += SeriesSvg(view, shown);
  EdgeMarks marks(view);
  for (const Shown& shown : view.series) svg += marks.Of(shown);
  return absl::StrCat(svg, "<line class=\"cursor\" y1=\"0\" y2=\"", Decimal(kPlotHeight), "\"/></svg></svg>");
}

// "3 of 99 values above 2.1 ms are not shown, the largest is 247 ms."
std::string ClippedNote(const View& view, const Shown& shown) {
  const Summary& summary = shown.numbers->summary;
  const Clipped clipped = ClippedBy(view.y, summary);
  std::vector<std::string> notes;
  if (clipped.above > 0) {
    notes.push_back(absl::StrCat(Count(clipped.above), " of ", Count(summary.finite), " values above ",
                                 report::Shown(view.y.high, view.units), " not shown, the largest is ",
                                 report::Shown(summary.max, view.units)));
  }
  if (clipped.below > 0) {
    notes.push_back(absl::StrCat(Count(clipped.below), " of ", Count(summary.finite), " values below ",
                                 report::Shown(view.y.low, view.units), " not shown, the least is ",
                                 report::Shown(summary.min, view.units)));
  }
  if (const std::string remarks = Remarks(summary, shown.run->skipped); !remarks.empty())
    notes.push_back(remarks);
  if (shown.numbers->curve.draws_per_point > 1) {
    notes.push_back(absl::StrCat("line: medians of ", Count(shown.numbers->curve.draws_per_point),
                                 " draws, band: their range"));
  }
  return absl::StrJoin(notes, "; ");
}

std::string Caption(const View& view) {
  std::string items;
  for (const Shown& shown : view.series) {
    const std::string note = ClippedNote(view, shown);
    if (note.empty()) continue;
    const std::string who = view.series.size() > 1 ? shown.run->label + ": " : "";
    absl::StrAppend(&items, "<span>", Html(absl::StrCat(who, note, ".")), "</span> ");
  }
  return items;
}

}  // namespace

std::string LineChart(absl::Span<const RunNumbers> runs, const std::string& metric) {
  const View view = ViewOf(runs, metric);
  const data::TableMetric& first = view.series.at(0).numbers->metric;
  std::string about = first.long_name;
  if (!first.statistic.empty()) absl::StrAppend(&about, about.empty() ? "" : ", ", first.statistic);
  if (!first.units.empty() && first.units != "1" && first.units != "s" && first.units != "bytes") {
    absl::StrAppend(&about, about.empty() ? "" : " ", "[", first.units, "]");
  }
  // The script shows values in the line of the description.
  return absl::StrCat("<figure class=\"card\"><h3>", Html(metric),
                      "</h3><div class=\"line\"><p class=\"about\">", Html(about),
                      "</p><p class=\"readout\" aria-hidden=\"true\"></p></div>", Svg(view, metric),
                      "<figcaption>", Caption(view), "</figcaption></figure>\n");
}

}  // namespace plait::report
