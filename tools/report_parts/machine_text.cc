#include "tools/report_parts/machine_text.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "nlohmann/json.hpp"
#include "tools/report_parts/comparison.h"

namespace plait::report {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json Numbers(absl::Span<const double> values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(Number(value));
  return list;
}

Json PlaceOf(std::int64_t place, const RunNumbers& run) {
  return place < 0 ? Json(nullptr) : Json(place + run.skipped);
}

Json MetricJson(const MetricNumbers& numbers, const RunNumbers& run) {
  const Summary& summary = numbers.summary;
  return {{"units", numbers.metric.units},
          {"long_name", numbers.metric.long_name},
          {"statistic", numbers.metric.statistic},
          {"n", summary.finite},
          {"nan", summary.nan},
          {"positive_infinities", summary.positive_infinities},
          {"negative_infinities", summary.negative_infinities},
          {"first_draw", PlaceOf(summary.first_place, run)},
          {"last_draw", PlaceOf(summary.last_place, run)},
          {"median", Number(summary.median)},
          {"p10", Number(summary.p10)},
          {"p90", Number(summary.p90)},
          {"mean", Number(summary.mean)},
          {"min", Number(summary.min)},
          {"max", Number(summary.max)},
          {"last", Number(summary.last)}};
}

Json RatesJson(const RunNumbers& run) {
  Json rates = Json::object();
  for (const Rate& rate : run.rates) {
    rates[rate.name] = {{"median", Number(rate.median)},
                        {"p10", Number(rate.p10)},
                        {"p90", Number(rate.p90)},
                        {"what", rate.what}};
  }
  return rates;
}

Json AxesJson(const RunNumbers& run) {
  Json axes = Json::object();
  for (const AxisTraffic& axis : run.traffic) {
    axes[axis.axis] = {{"bytes_per_step", Number(axis.bytes_per_step)},
                       {"total_bytes", Number(axis.total_bytes)},
                       {"in_flight_seconds", Number(axis.in_flight_seconds)},
                       {"exposed_seconds", Number(axis.exposed_seconds)},
                       {"overlap", Number(axis.overlap)}};
  }
  return axes;
}

Json RanksJson(const RunNumbers& run) {
  Json ranks = Json::object();
  for (const RankNumbers& vector : run.ranks) {
    ranks[vector.metric] = {{"units", vector.units},
                            {"medians", Numbers(vector.medians)},
                            {"slowest_shares", Numbers(vector.slowest_shares)},
                            {"slowest", vector.slowest < 0 ? Json(nullptr) : Json(vector.slowest)},
                            {"spread", Number(vector.spread)},
                            {"draws", vector.draws}};
  }
  return ranks;
}

Json RunJson(const RunNumbers& run) {
  Json attributes = Json::object(), metrics = Json::object();
  for (const auto& [name, value] : run.attributes) attributes[name] = value;
  for (const MetricNumbers& numbers : run.metrics) metrics[numbers.metric.name] = MetricJson(numbers, run);
  return {{"path", run.path},
          {"label", run.label},
          {"draws", run.draws},
          {"skipped", run.skipped},
          {"journal_draws", run.journal_draws},
          {"complete", run.complete},
          {"attributes", attributes},
          {"metrics", metrics},
          {"rates", RatesJson(run)},
          {"axes", AxesJson(run)},
          {"ranks", RanksJson(run)},
          {"notes", run.notes}};
}

Json ComparisonJson(absl::Span<const RunNumbers> runs) {
  Json rows = Json::array();
  for (const MetricNumbers& numbers : runs[0].metrics) {
    for (const RunNumbers& other : runs.subspan(1)) {
      const MetricNumbers* found = other.Find(numbers.metric.name);
      if (found == nullptr) continue;
      const Ratio ratio = Compare(numbers, *found);
      rows.push_back({{"metric", numbers.metric.name},
                      {"run", other.label},
                      {"per_step", AreComparedPerStep(numbers, *found)},
                      {"ratio", Number(ratio.ratio)},
                      {"low", Number(ratio.low)},
                      {"high", Number(ratio.high)},
                      {"difference", VerdictText(ratio.verdict)}});
    }
  }
  return rows;
}

std::string CsvCell(const std::string& text) {
  std::string clean = base::Printable(text, "\uFFFD");
  if (clean.find_first_of(",\"") == std::string::npos) return clean;
  return absl::StrCat("\"", absl::StrReplaceAll(clean, {{"\"", "\"\""}}), "\"");
}

// Round-trips exactly.
std::string CsvNumber(double value) {
  if (std::isnan(value)) return "nan";
  return absl::StrFormat("%.17g", value);
}

}  // namespace

std::string JsonText(absl::Span<const RunNumbers> runs) {
  Json report = {
      {"runs", Json::array()}, {"changed_settings", Json::object()}, {"comparison", Json::array()}};
  std::vector<NamedTexts> settings;
  for (const RunNumbers& run : runs) {
    report["runs"].push_back(RunJson(run));
    settings.push_back(run.settings);
  }
  for (const ChangedSetting& change : ChangedSettings(settings)) {
    report["changed_settings"][change.name] = change.values;
  }
  if (runs.size() > 1) report["comparison"] = ComparisonJson(runs);
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string CsvText(absl::Span<const RunNumbers> runs) {
  std::string text =
      "run,metric,units,statistic,n,nan,positive_infinities,negative_infinities,median,p10,p90,mean,min,max,"
      "last\n";
  for (const RunNumbers& run : runs) {
    for (const MetricNumbers& numbers : run.metrics) {
      const Summary& summary = numbers.summary;
      absl::StrAppend(&text, CsvCell(run.label), ",", CsvCell(numbers.metric.name), ",",
                      CsvCell(numbers.metric.units), ",", CsvCell(numbers.metric.statistic), ",");
      absl::StrAppend(&text, summary.finite, ",", summary.nan, ",", summary.positive_infinities, ",",
                      summary.negative_infinities);
      for (const double value :
           {summary.median, summary.p10, summary.p90, summary.mean, summary.min, summary.max, summary.last}) {
        absl::StrAppend(&text, ",", CsvNumber(value));
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace plait::report
