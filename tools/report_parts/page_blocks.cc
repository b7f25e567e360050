#include "tools/report_parts/page_blocks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/quantity.h"
#include "base/text.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

using base::EscapeHtml;
using base::FormatQuantity;

// The dot of the run with this label; "" if there is none, or only one run.
std::string DotOf(const std::string& label, absl::Span<const RunNumbers> runs) {
  for (std::size_t i = 0; i < runs.size() && runs.size() > 1; ++i) {
    if (runs[i].label == label) return absl::StrCat("<i class=\"dot c", i % kPageColourCount, "\"></i>");
  }
  return "";
}

std::string RowHtml(const ReportTable& table, const std::vector<std::string>& row,
                    absl::Span<const RunNumbers> runs) {
  constexpr std::size_t kLong = 40;  // longer texts wrap
  std::string html = absl::StrCat("<tr><th scope=\"row\" class=\"text\">", EscapeHtml(row[0]), "</th>");
  for (std::size_t column = 1; column < row.size(); ++column) {
    const bool text = table.IsText(column);
    const char* style = text && row[column].size() > kLong ? " class=\"text long\""
                        : text                             ? " class=\"text\""
                                                           : "";
    const std::string dot = table.header[column] == "run" ? DotOf(row[column], runs) : "";
    absl::StrAppend(&html, "<td", style, " data-column=\"", EscapeHtml(table.header[column]), "\">", dot,
                    EscapeHtml(row[column]), "</td>");
  }
  return html + "</tr>";
}

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
  const MetricNumbers* dt = FindAny(run, {"dt", "train_dt", "train/dt"});
  if (dt == nullptr || dt->per_step.finite == 0) return {};
  const double seconds = SecondsPerUnit(dt->metric);
  const auto shown = [&](double value) {
    return seconds > 0 ? FormatQuantity(seconds * value, "s")
                       : absl::StrCat(FormatQuantity(value), " ", dt->metric.units);
  };
  return {shown(dt->per_step.median), absl::StrCat(shown(dt->per_step.p10), " to ", shown(dt->per_step.p90))};
}

Fact Loss(const RunNumbers& run) {
  const MetricNumbers* loss = FindAny(run, {"loss", "train_loss", "train/loss"});
  if (loss == nullptr) return {};
  if (loss->nan_since >= 0) {
    return {"NaN", absl::StrCat("since draw ", base::FormatCount(loss->nan_since), "; before it ",
                                FormatQuantity(loss->summary.last), ", minimum ",
                                FormatQuantity(loss->summary.min))};
  }
  return {FormatQuantity(loss->summary.last), absl::StrCat("minimum ", FormatQuantity(loss->summary.min))};
}

const Rate* RateNamed(const RunNumbers& run, const std::string& name) {
  for (const Rate& rate : run.rates) {
    if (rate.name == name) return &rate;
  }
  return nullptr;
}

Fact FactOf(const Rate* rate) {
  if (rate == nullptr) return {};
  return {FormatQuantity(rate->median),
          absl::StrCat(FormatQuantity(rate->p10), " to ", FormatQuantity(rate->p90))};
}

Fact SamplesOfAllRanks(const RunNumbers& run) {
  const Rate *all = RateNamed(run, "sps_world"), *sps = RateNamed(run, "sps");
  if (all == nullptr && sps != nullptr && IsOfAllRanks(*sps)) all = sps;
  return FactOf(all);
}

Fact SamplesOfOneRank(const RunNumbers& run) {
  const Rate* sps = RateNamed(run, "sps");
  return sps == nullptr || IsOfAllRanks(*sps) ? Fact() : FactOf(sps);
}

Fact Tokens(const RunNumbers& run) {
  // Others may be of rank 0, or of one rank only.
  if (const Rate* tps = RateNamed(run, "tps"); tps != nullptr && IsOfAllRanks(*tps)) return FactOf(tps);
  for (const char* name : {"tokens", "tps_world", "tokens_per_second", "tps"}) {
    if (const Rate* rate = RateNamed(run, name)) return FactOf(rate);
  }
  return {};
}

Fact OverlapFact(const RunNumbers& run) {
  Fact fact;
  for (const AxisTraffic& axis : run.traffic) {
    if (std::isnan(axis.overlap)) continue;
    if (fact.value.empty()) {
      fact = {base::FormatPercent(axis.overlap), axis.axis};
    } else {
      absl::StrAppend(&fact.beside, ", ", axis.axis, " ", base::FormatPercent(axis.overlap));
    }
  }
  return fact;
}

Fact SlowestRank(const RunNumbers& run) {
  const RankNumbers* ranks = TellsSlowest(run.ranks);
  if (ranks == nullptr) return {};
  return {absl::StrCat("rank ", ranks->slowest),
          absl::StrCat(base::FormatRatio(ranks->spread), " times the median rank")};
}

// One line per run that has the fact; empty if none has.
template <typename FactOf>
std::string Tile(const char* title, absl::Span<const RunNumbers> runs, const FactOf& fact_of) {
  std::string lines;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Fact fact = fact_of(runs[i]);
    if (fact.value.empty()) continue;
    absl::StrAppend(&lines, "<p>", DotOf(runs[i].label, runs), "<b>", EscapeHtml(fact.value), "</b> <small>",
                    EscapeHtml(fact.beside), "</small></p>");
  }
  return lines.empty() ? "" : absl::StrCat("<div class=\"card tile\"><h3>", title, "</h3>", lines, "</div>");
}

}  // namespace

std::string TableHtml(const ReportTable& table, absl::Span<const RunNumbers> runs, NarrowTable narrow) {
  const std::string title = EscapeHtml(table.title);
  std::string html = absl::StrCat("<div class=\"scroll", narrow == NarrowTable::kStacks ? " stack" : "",
                                  "\" tabindex=\"0\" role=\"region\" aria-label=\"", title,
                                  "\"><table aria-label=\"", title, "\"><thead><tr>");
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    // A cell without text is no header.
    const std::string& name = table.header[column];
    const char* tag = name.empty() ? "td" : "th";
    absl::StrAppend(&html, "<", tag, table.IsText(column) ? " class=\"text\"" : "",
                    name.empty() ? "" : " scope=\"col\"", ">", DotOf(name, runs), EscapeHtml(name), "</", tag,
                    ">");
  }
  html += "</tr></thead><tbody>";
  for (const auto& row : table.rows) html += RowHtml(table, row, runs);
  html += "</tbody></table></div>";
  if (!table.foot.empty()) absl::StrAppend(&html, "<p class=\"foot\">", EscapeHtml(table.foot), "</p>");
  return html;
}

std::string Tiles(absl::Span<const RunNumbers> runs) {
  const std::string tiles = absl::StrCat(
      Tile("Median step", runs, StepTime), Tile("Samples per second, all ranks", runs, SamplesOfAllRanks),
      Tile("Samples per second, one rank", runs, SamplesOfOneRank), Tile("Tokens per second", runs, Tokens),
      Tile("Last loss", runs, Loss), Tile("Overlap of messages and work", runs, OverlapFact),
      Tile("Slowest rank", runs, SlowestRank));
  return tiles.empty() ? "" : absl::StrCat("<div class=\"tiles\">", tiles, "</div>");
}

}  // namespace plait::report
