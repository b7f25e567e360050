// Everything that a report says about one run, from its history.
//
//   PLAIT_ASSIGN_OR_RETURN(const RunNumbers run, ReadRun("run.h5", {.skip = 10}));
//   run.metrics[0].summary.median ...
//
// Columns are read one at a time; only their summaries stay in memory.
#ifndef PLAIT_TOOLS_REPORT_PARTS_RUN_NUMBERS_H_
#define PLAIT_TOOLS_REPORT_PARTS_RUN_NUMBERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/history/history_table.h"
#include "data/history/settings_line.h"
#include "tools/report_parts/step_timeline.h"
#include "tools/report_parts/summary.h"

namespace plait::report {

using data::NamedTexts;

struct RunOptions {
  std::vector<std::string> metrics = {};  // only these, in this order; empty: all
  std::int64_t skip = 0;                  // draws at the beginning that are left out, the warm-up
  bool timeline = false;                  // read the trace that the attribute `trace` names
};

struct MetricNumbers {
  data::TableMetric metric;  // a scalar
  Summary summary;
};

// Messages along one axis of the mesh.
struct AxisTraffic {
  std::string axis;
  double bytes_per_step = kNaN;  // median
  double total_bytes = kNaN;
  double in_flight_seconds = kNaN, exposed_seconds = kNaN;  // of a step, mean
  double overlap = kNaN;                                    // 1 - exposed / in flight, over all steps
};

struct Rate {
  std::string name;  // of the metric, or "steps"
  std::string what;  // "samples per second of one rank"
  double median = kNaN, p10 = kNaN, p90 = kNaN;
};

struct RankTimes {
  std::string metric;  // a vector along `rank`, such as dt_per_rank
  std::string units;
  std::vector<double> medians = {};         // by rank; NaN for a rank without finite values
  std::vector<double> slowest_shares = {};  // by rank: in which share of the draws it took longest
  std::int64_t slowest = -1;                // the rank of the largest median; -1: none
  double spread = 0;                        // largest median / median of the medians
  std::int64_t draws = 0;                   // that were looked at ...
  std::int64_t of_draws = 0;                // ... of so many: long runs of many ranks are looked at in parts
};

struct RunNumbers {
  std::string path;
  std::string label;  // short name, unique among the runs of a report
  NamedTexts attributes = {};
  NamedTexts settings = {};
  std::int64_t draws = 0;          // before --skip
  std::int64_t journal_draws = 0;  // of them, not in the file yet
  std::int64_t skipped = 0;
  bool complete = true;
  bool is_history = true;
  std::vector<MetricNumbers> metrics = {};
  std::vector<Rate> rates = {};
  std::vector<AxisTraffic> traffic = {};
  std::vector<RankTimes> ranks = {};
  std::vector<data::TableMetric> heat_maps = {};  // vectors that are shown as such: expert_load_...
  std::optional<StepTimeline> timeline = {};
  std::vector<std::string> notes = {};  // whole sentences, what the reader should know

  std::shared_ptr<const data::HistoryTable> table = {};  // open, for plots

  const MetricNumbers* Find(const std::string& name) const;
  std::string Attribute(const std::string& name) const;  // "" if there is none
};

// Errors: those of HistoryTable::Open; NotFound for a metric that the run does not have, naming those that it
// has; InvalidArgument where `skip` leaves nothing. A trace that cannot be read is a note.
absl::StatusOr<RunNumbers> ReadRun(const std::string& path, const RunOptions& options);

// Whether a metric is the wanted one; other programs put the part of the run before its name: train_loss,
// train/dt.
bool IsCalled(const std::string& name, const std::string& wanted);

// Labels: the file's name, with as many of its folders as it takes to tell the runs apart.
void Label(std::vector<RunNumbers>& runs);

// "in 3 of 99 draws NaN", "from draw 120 on", ...: what a metric's numbers do not show; empty for none.
std::string Remarks(const Summary& summary, std::int64_t first_draw);

// Of all runs, those of the first run first, in the order of its file. Statistics over ranks are
// left out: dt_mean, dt_min, dt_max and dt_std where there is dt.
std::vector<std::string> MetricNames(absl::Span<const RunNumbers> runs);

// "dt" for dt_mean, dt_min, dt_max and dt_std where the run has dt as well, else "".
std::string MeanOfSpread(const RunNumbers& run, const std::string& name);

// What a reader looks for first: loss, dt, dtf, dtb, sps, sps_world and accuracy, also of programs that name
// them train_loss or train/loss; where there are none, the first three metrics. Only metrics with values.
std::vector<std::string> MainMetrics(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_RUN_NUMBERS_H_
