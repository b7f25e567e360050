// The tables of a report, the same for terminals, Markdown and pages.
#ifndef PLAIT_TOOLS_REPORT_PARTS_REPORT_TABLES_H_
#define PLAIT_TOOLS_REPORT_PARTS_REPORT_TABLES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

struct ReportTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
  int texts = 1;          // number of leading columns of text, which name the row; left-aligned
  int last_texts = 0;     // number of trailing columns of text; left-aligned
  std::string foot = {};  // footnote, a sentence or two

  bool IsText(std::size_t column) const {
    return column < std::size_t(texts) || column + last_texts >= header.size();
  }
};

// A value of the metric, or a statistic of its values: base::FormatQuantity, but whole numbers without a unit prefix keep
// all digits, as counters of steps and tokens have.
std::string MetricText(double value, const MetricNumbers& numbers);

// The same in the units of `metric`, of another run; with its own unit where it cannot be converted: "2.5 bits".
std::string MetricTextIn(const data::TableMetric& metric, double value, const MetricNumbers& numbers);

// What each run is: its file, number of draws and attributes; a row per property, a column per run.
ReportTable RunTable(absl::Span<const RunNumbers> runs);

// n, median, p10, p90, mean, min, max, last, medians of the minimum and the maximum over ranks, and remarks; a row per
// metric and run.
ReportTable MetricTable(absl::Span<const RunNumbers> runs);

// Steps, samples and tokens per second. This and the following tables may have no rows.
ReportTable RateTable(absl::Span<const RunNumbers> runs);

// Bytes, time in flight and exposed, and overlap, per axis.
ReportTable TrafficTable(absl::Span<const RunNumbers> runs);

// The slowest ranks of each vector along `rank`, slowest first: at most `most_ranks` rows for each vector and run. Of a
// vector that does not tell which rank is slow (rank_numbers.h) the largest numbers.
ReportTable RankTable(absl::Span<const RunNumbers> runs, int most_ranks);

// Settings that are not the same in all runs; no rows for a single run.
ReportTable ChangeTable(absl::Span<const RunNumbers> runs);

// Medians of the metrics of the first run and of each other run that has them, in the units of the first run, with
// ratio, interval and verdict.
ReportTable ComparisonTable(absl::Span<const RunNumbers> runs);

// All tables that have rows: changed settings and numbers first, RunTable last.
std::vector<ReportTable> ReportTables(absl::Span<const RunNumbers> runs);

// Remarks about the runs, whole sentences; each begins with the run's label where there are several. Of several runs
// also which metrics have units that cannot be converted to those of the runs before.
std::vector<std::string> Notes(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_REPORT_TABLES_H_
