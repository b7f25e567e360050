#include "tools/report_pages/tiles.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tools/report_pages/html_text.h"
#include "tools/report_pages/line_chart.h"
#include "tools/report_text/number_text.h"

namespace plait::report {
namespace {

struct Fact {
  std::string value, beside;
};

const MetricNumbers* FindAny(const RunNumbers& run, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const MetricNumbers* numbers = run.Find(name); numbers != nullptr && numbers->summary.finite > 0) {
      return numbers;
    }
  }
  return nullptr;
}

Fact StepTime(const RunNumbers& run) {
  const MetricNumbers* dt = FindAny(run, {"dt", "train_dt", "train/dt", "time_per_batch"});
  if (dt == nullptr) return {};
  const std::string& units = dt->metric.units;
  return {Shown(dt->summary.median, units),
          absl::StrCat(Shown(dt->summary.p10, units), " to ", Shown(dt->summary.p90, units))};
}

Fact Loss(const RunNumbers& run) {
  const MetricNumbers* loss = FindAny(run, {"loss", "train_loss", "train/loss"});
  if (loss == nullptr) return {};
  return {Shown(loss->summary.last), absl::StrCat("least ", Shown(loss->summary.min))};
}

Fact RateNamed(const RunNumbers& run, const std::string& name) {
  for (const Rate& rate : run.rates) {
    if (rate.name == name)
      return {Shown(rate.median), absl::StrCat(Shown(rate.p10), " to ", Shown(rate.p90))};
  }
  return {};
}

Fact OverlapFact(const RunNumbers& run) {
  Fact fact;
  for (const AxisTraffic& axis : run.traffic) {
    if (std::isnan(axis.overlap)) continue;
    if (fact.value.empty()) {
      fact = {Percent(axis.overlap), axis.axis};
    } else {
      absl::StrAppend(&fact.beside, ", ", axis.axis, " ", Percent(axis.overlap));
    }
  }
  return fact;
}

Fact SlowestRank(const RunNumbers& run) {
  if (run.ranks.empty() || run.ranks[0].slowest < 0) return {};
  return {absl::StrCat("rank ", run.ranks[0].slowest),
          absl::StrCat(Times(run.ranks[0].spread), " times the median rank")};
}

// Of all runs; nothing where no run has the fact.
template <typename FactOf>
std::string Tile(const char* title, absl::Span<const RunNumbers> runs, const FactOf& fact_of) {
  std::string lines;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Fact fact = fact_of(runs[i]);
    if (fact.value.empty()) continue;
    const std::string dot =
        runs.size() > 1 ? absl::StrCat("<i class=\"dot c", i % kRunColours, "\"></i>") : "";
    absl::StrAppend(&lines, "<p>", dot, "<b>", Html(fact.value), "</b> <small>", Html(fact.beside),
                    "</small></p>");
  }
  return lines.empty() ? "" : absl::StrCat("<div class=\"card tile\"><h3>", title, "</h3>", lines, "</div>");
}

}  // namespace

std::string Tiles(absl::Span<const RunNumbers> runs) {
  const auto rate = [](const char* name) {
    return [name](const RunNumbers& run) { return RateNamed(run, name); };
  };
  const std::string tiles = absl::StrCat(
      Tile("Median step", runs, StepTime), Tile("Samples per second, all ranks", runs, rate("sps_world")),
      Tile("Samples per second, one rank", runs, rate("sps")),
      Tile("Tokens per second", runs, rate("tokens")), Tile("Last loss", runs, Loss),
      Tile("Overlap of messages and work", runs, OverlapFact), Tile("Slowest rank", runs, SlowestRank));
  return tiles.empty() ? "" : absl::StrCat("<div class=\"tiles\">", tiles, "</div>");
}

}  // namespace plait::report
