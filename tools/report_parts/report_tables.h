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
  int texts = 1;          // the first columns are texts that name the row; they are set to the left
  int last_texts = 0;     // so are the last ones
  std::string foot = {};  // a sentence or two

  bool IsText(std::size_t column) const {
    return column < std::size_t(texts) || column + last_texts >= header.size();
  }
};

// What each run is: its file, number of draws and attributes; a row per property, a column per run.
ReportTable RunTable(absl::Span<const RunNumbers> runs);

// n, median, p10, p90, mean, min, max, last, medians of the least and the largest rank, and remarks; a row
// per metric and run.
ReportTable MetricTable(absl::Span<const RunNumbers> runs);

// Steps, samples and tokens per second. May have no rows, as the following.
ReportTable RateTable(absl::Span<const RunNumbers> runs);

// Bytes, time in flight and exposed, and overlap, per axis.
ReportTable TrafficTable(absl::Span<const RunNumbers> runs);

// The slowest ranks of each vector over ranks: at most `most_ranks` rows for each, the slowest one first.
ReportTable RankTable(absl::Span<const RunNumbers> runs, int most_ranks);

// Settings that are not the same in all runs; no rows for a single run.
ReportTable ChangeTable(absl::Span<const RunNumbers> runs);

// Medians of metrics that several runs have, ratios to the first run with interval and verdict.
ReportTable ComparisonTable(absl::Span<const RunNumbers> runs);

// All of them that have rows: what changed and the numbers first, last what the runs are.
std::vector<ReportTable> ReportTables(absl::Span<const RunNumbers> runs);

// Remarks about the runs, whole sentences; each begins with the run's label where there are several.
std::vector<std::string> Notes(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_REPORT_TABLES_H_
