#include "tools/report_parts/timeline_chart.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quantity.h"
#include "base/text.h"
#include "data/plot/axis.h"

namespace plait::report {
namespace {

// Largest number of bars of a rank over all lanes; the shortest are left out.
constexpr std::size_t kMostBars = 400;
constexpr int kRowHeight = 18;

constexpr std::pair<BarKind, const char*> kKinds[] = {
    {BarKind::kForward, "forward"},  {BarKind::kBackward, "backward"}, {BarKind::kOptimizer, "optimizer"},
    {BarKind::kMessage, "messages"}, {BarKind::kWaiting, "waiting"},   {BarKind::kOther, "other"}};

const char* ClassOf(BarKind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) return name;
  }
  return "";
}

using Interval = std::pair<double, double>;

// Disjoint and ascending.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> united;
  for (const Interval& interval : intervals) {
    if (united.empty() || interval.first > united.back().second) {
      united.push_back(interval);
    } else {
      united.back().second = std::max(united.back().second, interval.second);
    }
  }
  return united;
}

// With at most two digits after the point: "12.5".
std::string Decimal(double value) { return absl::StrCat(std::round(100 * value) / 100); }

double Length(const std::vector<Interval>& intervals) {
  double length = 0;
  for (const Interval& interval : intervals) length += interval.second - interval.first;
  return length;
}

// The end of the bar, in which the rank was blocked.
Interval WaitOf(const Bar& bar) {
  return {bar.end_seconds - std::max(0.0, bar.waited_seconds), bar.end_seconds};
}

double CommonLength(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double length = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return length;
}

// Bars shorter than this are left out, so that at most kMostBars are left.
double ShortestShown(const RankLanes& rank) {
  std::vector<double> lengths;
  for (const Lane& lane : rank.lanes) {
    for (const Bar& bar : lane.bars) lengths.push_back(bar.end_seconds - bar.begin_seconds);
  }
  if (lengths.size() <= kMostBars) return 0;
  std::nth_element(lengths.begin(), lengths.begin() + kMostBars, lengths.end(), std::greater<>());
  return lengths[kMostBars];
}

std::string BarHtml(const Bar& bar, double step_seconds) {
  const double length = bar.end_seconds - bar.begin_seconds;
  std::string title = absl::StrCat(bar.name, ": ", base::FormatQuantity(length, "s"), " from ",
                                   base::FormatQuantity(bar.begin_seconds, "s"));
  if (bar.waited_seconds >= 0)
    absl::StrAppend(&title, ", waited ", base::FormatQuantity(bar.waited_seconds, "s"));
  if (bar.bytes >= 0)
    absl::StrAppend(&title, ", ", base::FormatQuantity(static_cast<double>(bar.bytes), "bytes"));
  return absl::StrCat("<span class=\"bar ", ClassOf(KindOfBar(bar.name)),
                      "\" style=\"left:", Decimal(100 * bar.begin_seconds / step_seconds),
                      "%;width:", Decimal(100 * length / step_seconds), "%;top:", bar.depth * kRowHeight,
                      "px\" title=\"", base::EscapeHtml(title), "\">", base::EscapeHtml(bar.name), "</span>");
}

std::string LaneHtml(const Lane& lane, double step_seconds, double shortest) {
  std::string bars;
  int rows = 1;
  for (const Bar& bar : lane.bars) {
    if (bar.end_seconds - bar.begin_seconds < shortest) continue;
    rows = std::max(rows, bar.depth + 1);
    bars += BarHtml(bar, step_seconds);
  }
  const std::string name =
      lane.name.empty() ? "" : absl::StrCat("<p class=\"lane-name\">", base::EscapeHtml(lane.name), "</p>");
  return absl::StrCat(name, "<div class=\"lane\" aria-hidden=\"true\" style=\"height:", rows * kRowHeight,
                      "px\">", bars, "</div>");
}

std::string RankHtml(const RankLanes& rank, double step_seconds) {
  const Overlap overlap = OverlapOf(rank);
  std::string facts;
  if (overlap.message_seconds > 0) {
    facts = absl::StrCat("messages ", base::FormatQuantity(overlap.message_seconds, "s"), ", ",
                         base::FormatPercent(overlap.covered_seconds / overlap.message_seconds),
                         " overlapped with computation, ",
                         base::FormatQuantity(overlap.message_seconds - overlap.covered_seconds, "s"),
                         " exposed");
  }
  std::string html = absl::StrCat("<div class=\"rank\"><p class=\"rank-name\"><b>",
                                  base::EscapeHtml(rank.name), "</b> ", base::EscapeHtml(facts), "</p>");
  const double shortest = ShortestShown(rank);
  for (const Lane& lane : rank.lanes) html += LaneHtml(lane, step_seconds, shortest);
  return html + "</div>";
}

std::string TimeAxis(double seconds) {
  std::string html = "<div class=\"time-axis\" aria-hidden=\"true\">";
  for (const data::Tick& tick : data::Ticks({0, seconds, false, "s"}, 5)) {
    // The last ones would stick out.
    const double place = 100 * tick.value / seconds;
    absl::StrAppend(&html, "<span class=\"", place > 88 ? "late" : "", "\" style=\"left:", Decimal(place),
                    "%\">", base::EscapeHtml(tick.label), "</span>");
  }
  return html + "</div>";
}

std::string Legend(const StepTimeline& timeline) {
  std::set<BarKind> there;
  for (const RankLanes& rank : timeline.ranks) {
    for (const Lane& lane : rank.lanes) {
      for (const Bar& bar : lane.bars) there.insert(KindOfBar(bar.name));
    }
  }
  std::string html = "<p class=\"legend\">";
  for (const auto& [kind, name] : kKinds) {
    if (there.count(kind) == 0) continue;
    absl::StrAppend(&html, "<span><i class=\"swatch ", name, "\"></i>", name, "</span> ");
  }
  return html + "</p>";
}

}  // namespace

BarKind KindOfBar(const std::string& name) {
  for (const char* message : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                              "reduce", "gather", "scatter", "send", "recv", "receive", "barrier"}) {
    if (absl::StartsWith(name, message)) return BarKind::kMessage;
  }
  if (name == "waiting") return BarKind::kWaiting;
  if (absl::StartsWith(name, "forward")) return BarKind::kForward;
  if (absl::StartsWith(name, "backward")) return BarKind::kBackward;
  if (absl::StartsWith(name, "optimizer")) return BarKind::kOptimizer;
  return BarKind::kOther;
}

Overlap OverlapOf(const RankLanes& rank) {
  std::vector<Interval> messages, work, waits;
  bool told = true;
  for (const Lane& lane : rank.lanes) {
    for (const Bar& bar : lane.bars) {
      const BarKind kind = KindOfBar(bar.name);
      if (kind == BarKind::kForward || kind == BarKind::kBackward || kind == BarKind::kOptimizer) {
        work.emplace_back(bar.begin_seconds, bar.end_seconds);
      }
      if (kind != BarKind::kMessage) continue;
      messages.emplace_back(bar.begin_seconds, bar.end_seconds);
      waits.emplace_back(WaitOf(bar));
      told = told && bar.waited_seconds >= 0;
    }
  }
  messages = Union(std::move(messages));
  if (told) return {Length(messages), Length(messages) - Length(Union(std::move(waits)))};
  return {Length(messages), CommonLength(messages, Union(std::move(work)))};
}

std::string TimelineChart(const StepTimeline& timeline, int most_ranks) {
  std::string title = timeline.step < 0
                          ? absl::StrCat("The whole trace, ", base::FormatQuantity(timeline.seconds, "s"))
                          : absl::StrCat("Step ", base::FormatCount(timeline.step), ", ",
                                         base::FormatQuantity(timeline.seconds, "s"), ": the median of ",
                                         base::FormatCount(timeline.steps), " steps in the trace");
  std::string html = absl::StrCat("<figure class=\"card timeline\"><h3>", base::EscapeHtml(title), "</h3>",
                                  Legend(timeline));
  for (std::size_t i = 0; i < timeline.ranks.size() && i < std::size_t(most_ranks); ++i) {
    html += RankHtml(timeline.ranks[i], timeline.seconds);
  }
  html += TimeAxis(timeline.seconds);
  std::string note = timeline.note;
  if (timeline.ranks.size() > std::size_t(most_ranks)) {
    absl::StrAppend(&note, note.empty() ? "" : "; ", "the first ", most_ranks, " of ", timeline.ranks.size(),
                    " ranks");
  }
  return absl::StrCat(html, "<figcaption>", base::EscapeHtml(note), "</figcaption></figure>\n");
}

}  // namespace plait::report
