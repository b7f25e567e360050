#include "tools/report_parts/report_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "tools/report_parts/comparison.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

using Row = std::vector<std::string>;

constexpr int kMostRanks = 8;

// Seconds and bytes carry their unit in every cell.
std::string ShownUnits(const std::string& units) {
  return units == "s" || units == "bytes" || units == "1" ? "" : units;
}

// Drops the column "run" if there is a single run.
ReportTable WithRunColumn(ReportTable table, bool several) {
  if (several) return table;
  const auto place = std::find(table.header.begin(), table.header.end(), "run");
  const auto column = place - table.header.begin();
  table.header.erase(place);
  for (Row& row : table.rows) row.erase(row.begin() + column);
  --table.texts;
  return table;
}

// Drops the column if it has no entries.
void DropIfEmpty(ReportTable& table, const std::string& name, bool is_first_text) {
  const auto place = std::find(table.header.begin(), table.header.end(), name);
  const auto column = place - table.header.begin();
  for (const Row& row : table.rows) {
    if (!row[column].empty()) return;
  }
  table.header.erase(place);
  for (Row& row : table.rows) row.erase(row.begin() + column);
  --(is_first_text ? table.texts : table.last_texts);
}

std::string DrawsText(const RunNumbers& run) {
  std::string text = base::FormatCount(run.draws);
  if (run.skipped > 0) absl::StrAppend(&text, ", the first ", base::FormatCount(run.skipped), " left out");
  if (run.journal_draws > 0)
    absl::StrAppend(&text, ", ", base::FormatCount(run.journal_draws), " from the journal");
  return text;
}

std::vector<std::string> AttributeNames(absl::Span<const RunNumbers> runs) {
  // What a reader looks for first, then the others in the order of the files.
  std::vector<std::string> names = {"program", "command", "host",     "machine", "scheduler",
                                    "ranks",   "started", "revision", "seed",    "settings"};
  for (const RunNumbers& run : runs) {
    for (const auto& [name, value] : run.attributes) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// Medians of the minimum and the maximum over ranks, "1.5 ms .. 1.6 ms"; "" if the run has none.
std::string RangeOverRanks(const RunNumbers& run, const MetricNumbers& mean) {
  const std::string least = mean.metric.name + "_min", largest = mean.metric.name + "_max";
  if (MeanOfSpread(run, least).empty() || MeanOfSpread(run, largest).empty()) return "";
  return absl::StrCat(MetricText(run.Find(least)->summary.median, mean), " .. ",
                      MetricText(run.Find(largest)->summary.median, mean));
}

Row MetricRow(const RunNumbers& run, const MetricNumbers& numbers) {
  const Summary& summary = numbers.summary;
  Row row = {numbers.metric.name, ShownUnits(numbers.metric.units), run.label,
             base::FormatCount(summary.finite)};
  for (const double value :
       {summary.median, summary.p10, summary.p90, summary.mean, summary.min, summary.max, summary.last}) {
    row.push_back(MetricText(value, numbers));
  }
  row.push_back(RangeOverRanks(run, numbers));
  row.push_back(Remarks(summary, run.skipped));
  return row;
}

Row ComparisonRow(const RunNumbers& first, const RunNumbers& other, const std::string& name) {
  const MetricNumbers& base = *first.Find(name);
  const MetricNumbers& numbers = *other.Find(name);
  const Ratio ratio = Compare(base, numbers);
  const bool judged = !std::isnan(ratio.low);
  const bool per_step = AreComparedPerStep(base, numbers);
  const auto median = [per_step](const MetricNumbers& of) {
    return per_step ? of.per_step.median : of.summary.median;
  };
  const data::TableMetric& units_of = ratio.verdict == Verdict::kOtherUnits ? numbers.metric : base.metric;
  return {absl::StrCat(name, per_step ? ", per step" : ""),
          other.label,
          MetricTextIn(units_of, median(base), base),
          MetricTextIn(base.metric, median(numbers), numbers),
          base::FormatRatio(ratio.ratio),
          judged ? absl::StrCat(base::FormatRatio(ratio.low), " .. ", base::FormatRatio(ratio.high)) : "-",
          VerdictText(ratio.verdict)};
}

// The slowest ranks first, where the vector tells, else the largest numbers; ranks without numbers last.
std::vector<std::size_t> FirstRanks(const RankNumbers& ranks, std::size_t most) {
  std::vector<std::size_t> order(ranks.medians.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min(order.size(), most);
  const double sign = ranks.slowest_is == SlowestIs::kLowest ? -1 : 1;
  const auto place = [&](std::size_t rank) {
    const double median = ranks.medians[rank];
    return std::isnan(median) ? -std::numeric_limits<double>::infinity() : sign * median;
  };
  std::partial_sort(order.begin(), end, order.end(),
                    [&](std::size_t a, std::size_t b) { return place(a) > place(b); });
  order.erase(end, order.end());
  return order;
}

// NaN if the vector does not tell.
double FastestMedian(const RankNumbers& ranks) {
  double fastest = kNaN;
  for (const double median : ranks.medians) {
    if (ranks.slowest_is == SlowestIs::kLargest) fastest = std::fmin(fastest, median);
    if (ranks.slowest_is == SlowestIs::kLowest) fastest = std::fmax(fastest, median);
  }
  return fastest;
}

// Times in seconds, whatever the file's unit: the table has no column for it.
std::string RankText(double median, const RankNumbers& ranks) {
  const double seconds = SecondsIn(ranks.units);
  return seconds > 0 ? base::FormatQuantity(seconds * median, "s")
                     : base::FormatQuantity(median, ranks.units);
}

void AddRankRows(const RunNumbers& run, const RankNumbers& ranks, int most_ranks, ReportTable& table) {
  const double fastest = FastestMedian(ranks);
  for (const std::size_t rank : FirstRanks(ranks, most_ranks)) {
    const double share = ranks.slowest_shares.empty() ? kNaN : ranks.slowest_shares[rank];
    table.rows.push_back({ranks.metric, run.label, absl::StrCat(rank), RankText(ranks.medians[rank], ranks),
                          base::FormatRatio(ranks.medians[rank] / fastest), base::FormatPercent(share)});
  }
}

// "run.h5: slowest in dt_per_rank is rank 3, 1.2 times the median rank."; "" if nothing tells.
std::string SlowestSentence(const RunNumbers& run) {
  const RankNumbers* ranks = TellsSlowest(run.ranks);
  if (ranks == nullptr) return "";
  std::string sentence = absl::StrCat(run.label, ": slowest in ", ranks->metric, " is rank ", ranks->slowest,
                                      ", ", base::FormatRatio(ranks->spread), " times the median rank");
  if (ranks->draws < ranks->of_draws) {
    absl::StrAppend(&sentence, " (", base::FormatCount(ranks->draws), " of ",
                    base::FormatCount(ranks->of_draws), " draws looked at)");
  }
  return sentence + ".";
}

// Of run `place`; "" if it has the units of the runs before.
std::string OtherUnitsNote(absl::Span<const RunNumbers> runs, std::size_t place) {
  std::vector<std::string> metrics;
  for (const std::string& name : MetricNames(runs)) {
    const MetricNumbers* numbers = runs[place].Find(name);
    if (numbers == nullptr || numbers->summary.last_place < 0) continue;
    const data::TableMetric& first = FirstNumbers(runs, name)->metric;
    if (FactorBetween(numbers->metric, first) != 0) continue;
    metrics.push_back(absl::StrCat(name, " (\"", numbers->metric.units, "\", not \"", first.units, "\")"));
  }
  if (metrics.empty()) return "";
  return absl::StrCat(runs[place].label,
                      ": other units than in the runs before it: ", absl::StrJoin(metrics, ", "),
                      "; not compared, and not in the plots of these.");
}

}  // namespace

std::string MetricText(double value, const MetricNumbers& numbers) {
  constexpr double kShort = 1e6, kMostExact = 0x1p53;  // FormatQuantity keeps all digits of shorter ones
  const std::string& units = numbers.metric.units;
  const double size = std::abs(value);
  const bool counts = numbers.summary.whole && units != "s" && units != "bytes";
  if (counts && size >= kShort && size <= kMostExact) return base::FormatCount(std::llround(value));
  return base::FormatQuantity(value, units);
}

std::string MetricTextIn(const data::TableMetric& metric, double value, const MetricNumbers& numbers) {
  const std::optional<MetricNumbers> converted = InUnitsOf(metric, numbers);
  if (converted.has_value()) return MetricText(value * FactorBetween(numbers.metric, metric), *converted);
  const std::string units = ShownUnits(numbers.metric.units);
  return absl::StrCat(MetricText(value, numbers), units.empty() ? "" : " ", units);
}

ReportTable RunTable(absl::Span<const RunNumbers> runs) {
  ReportTable table = {.title = "Runs", .header = {""}, .rows = {}};
  table.texts = 1;
  table.last_texts = static_cast<int>(runs.size());
  Row files = {"file"}, draws = {"draws"};
  for (const RunNumbers& run : runs) {
    table.header.push_back(run.label);
    files.push_back(run.path);
    draws.push_back(DrawsText(run));
  }
  table.rows = {files, draws};
  for (const std::string& name : AttributeNames(runs)) {
    Row row = {name};
    for (const RunNumbers& run : runs) row.push_back(run.Attribute(name));
    const bool empty =
        std::all_of(row.begin() + 1, row.end(), [](const std::string& s) { return s.empty(); });
    if (!empty) table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable MetricTable(absl::Span<const RunNumbers> runs) {
  ReportTable table = {.title = "Metrics",
                       .header = {"metric", "unit", "run", "n", "median", "p10", "p90", "mean", "min", "max",
                                  "last", "over ranks", "remarks"},
                       .rows = {},
                       .texts = 3,
                       .last_texts = 2};
  for (const std::string& name : MetricNames(runs)) {
    for (const RunNumbers& run : runs) {
      if (const MetricNumbers* numbers = run.Find(name)) table.rows.push_back(MetricRow(run, *numbers));
    }
  }
  DropIfEmpty(table, "unit", true);
  DropIfEmpty(table, "over ranks", false);
  DropIfEmpty(table, "remarks", false);
  return WithRunColumn(std::move(table), runs.size() > 1);
}

ReportTable RateTable(absl::Span<const RunNumbers> runs) {
  ReportTable table = {.title = "Throughput",
                       .header = {"rate", "run", "median", "p10", "p90", "what"},
                       .rows = {},
                       .texts = 2,
                       .last_texts = 1};
  for (const RunNumbers& run : runs) {
    for (const Rate& rate : run.rates) {
      table.rows.push_back({rate.name, run.label, base::FormatQuantity(rate.median),
                            base::FormatQuantity(rate.p10), base::FormatQuantity(rate.p90), rate.what});
    }
  }
  return WithRunColumn(std::move(table), runs.size() > 1);
}

ReportTable TrafficTable(absl::Span<const RunNumbers> runs) {
  ReportTable table = {
      .title = "Messages by axis",
      .header = {"axis", "run", "bytes/step", "total", "in flight/step", "exposed/step", "overlap"},
      .rows = {},
      .texts = 2,
      .foot = "Bytes are those that a rank sends; overlap is 1 - exposed / in flight, over all steps."};
  for (const RunNumbers& run : runs) {
    for (const AxisTraffic& axis : run.traffic) {
      table.rows.push_back(
          {axis.axis, run.label, base::FormatQuantity(axis.bytes_per_step, "bytes"),
           base::FormatQuantity(axis.total_bytes, "bytes"), base::FormatQuantity(axis.in_flight_seconds, "s"),
           base::FormatQuantity(axis.exposed_seconds, "s"), base::FormatPercent(axis.overlap)});
    }
  }
  return WithRunColumn(std::move(table), runs.size() > 1);
}

ReportTable RankTable(absl::Span<const RunNumbers> runs, int most_ranks) {
  ReportTable table = {.title = "Ranks",
                       .header = {"metric", "run", "rank", "median", "to fastest", "slowest in"},
                       .rows = {},
                       .texts = 2};
  for (const RunNumbers& run : runs) {
    for (const RankNumbers& ranks : run.ranks) AddRankRows(run, ranks, most_ranks, table);
    const std::string sentence = SlowestSentence(run);
    absl::StrAppend(&table.foot, table.foot.empty() || sentence.empty() ? "" : " ", sentence);
  }
  return WithRunColumn(std::move(table), runs.size() > 1);
}

ReportTable ChangeTable(absl::Span<const RunNumbers> runs) {
  ReportTable table = {.title = "Changed settings", .header = {"setting"}, .rows = {}};
  table.last_texts = static_cast<int>(runs.size());
  std::vector<NamedTexts> settings;
  for (const RunNumbers& run : runs) {
    table.header.push_back(run.label);
    settings.push_back(run.settings);
  }
  for (const ChangedSetting& change : ChangedSettings(settings)) {
    Row row = {change.name};
    row.insert(row.end(), change.values.begin(), change.values.end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable ComparisonTable(absl::Span<const RunNumbers> runs) {
  ReportTable table = {.title = "Comparison",
                       .header = {"metric", "run", "first", "other", "ratio", "interval", "difference"},
                       .rows = {},
                       .texts = 2,
                       .last_texts = 1,
                       .foot = VerdictMethod()};
  if (runs.size() < 2) return table;
  table.foot = absl::StrCat("First: ", runs[0].label, ". ", table.foot);
  for (const std::string& name : MetricNames(runs.first(1))) {
    for (const RunNumbers& other : runs.subspan(1)) {
      if (other.Find(name) != nullptr) table.rows.push_back(ComparisonRow(runs[0], other, name));
    }
  }
  return table;
}

std::vector<ReportTable> ReportTables(absl::Span<const RunNumbers> runs) {
  std::vector<ReportTable> tables;
  for (ReportTable table : {ChangeTable(runs), MetricTable(runs), ComparisonTable(runs), RateTable(runs),
                            TrafficTable(runs), RankTable(runs, kMostRanks), RunTable(runs)}) {
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<std::string> Notes(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> notes;
  for (std::size_t place = 0; place < runs.size(); ++place) {
    const RunNumbers& run = runs[place];
    for (const std::string& note : run.notes) {
      notes.push_back(runs.size() > 1 ? absl::StrCat(run.label, ": ", note) : note);
    }
    if (const std::string note = OtherUnitsNote(runs, place); !note.empty()) notes.push_back(note);
  }
  return notes;
}

}  // namespace plait::report
