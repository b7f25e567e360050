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
#include "tools/report_parts/rank_numbers.h"
#include "tools/report_parts/step_timeline.h"
#include "tools/report_parts/summary.h"

namespace plait::report {

using data::NamedTexts;

struct RunOptions {
  std::vector<std::string> metrics = {};  // only these, in this order; empty: all
  std::int64_t skip = 0;                  // number of draws to omit at the beginning (warm-up)
  bool timeline = false;                  // read the trace that the attribute `trace` names
};

struct MetricNumbers {
  data::TableMetric metric;  // a scalar
  Summary summary;
  Summary per_step;  // of a sum over the steps of a draw (steps_per_draw.h); else the same as `summary`
  // The draw from which on it has no value though steps were taken; -1: none, or it is sparse.
  std::int64_t nan_since = -1;
};

// Messages along one axis of the mesh.
struct AxisTraffic {
  std::string axis;
  double bytes_per_step = kNaN;  // median over draws
  double total_bytes = kNaN;
  double in_flight_seconds = kNaN, exposed_seconds = kNaN;  // of a step, mean
  double overlap = kNaN;                                    // 1 - exposed / in flight, over all steps
};

struct Rate {
  std::string name;  // of the metric, or "steps"; "tokens": derived, where the run records none of all ranks
  std::string what;  // "samples per second of one rank"
  double median = kNaN, p10 = kNaN, p90 = kNaN;
};

struct RunNumbers {
  std::string path;
  std::string label;  // short name, unique among the runs of a report
  NamedTexts attributes = {};
  NamedTexts settings = {};
  std::int64_t draws = 0;          // before --skip
  std::int64_t journal_draws = 0;  // of these, in the journal only
  std::int64_t skipped = 0;
  bool complete = true;
  bool is_history = true;
  std::vector<MetricNumbers> metrics = {};
  std::vector<Rate> rates = {};
  std::vector<AxisTraffic> traffic = {};
  std::vector<RankNumbers> ranks = {};
  std::vector<data::TableMetric> heat_maps = {};  // vectors shown as heat maps: expert_load_...
  std::optional<StepTimeline> timeline = {};
  std::vector<std::string> notes = {};  // whole sentences

  std::shared_ptr<const data::HistoryTable> table = {};  // open, for plots

  const MetricNumbers* Find(const std::string& name) const;
  std::string Attribute(const std::string& name) const;  // "" if there is none
};

// Errors of HistoryTable::Open; NOT_FOUND for a wanted metric that the run lacks, listing those it has;
// INVALID_ARGUMENT if `skip` leaves no draws. A trace that cannot be read gives a note.
absl::StatusOr<RunNumbers> ReadRun(const std::string& path, const RunOptions& options);

// The runs that can be read, labelled; appends the errors of the others.
std::vector<RunNumbers> ReadRuns(const std::vector<std::string>& paths, const RunOptions& options,
                                 std::vector<absl::Status>& unreadable);

// The file that the attribute `trace` names, beside the history; "" if there is none.
std::string TracePath(const RunNumbers& run);

// Programs differ in what they call sps and tps: `what` tells.
bool IsOfAllRanks(const Rate& rate);

// Whether `name` is `wanted`, or `wanted` with the prefix train_ or train/ of other programs.
bool IsCalled(const std::string& name, const std::string& wanted);

// Sets the labels: the file name, preceded by as many parent directories as needed to distinguish the runs.
void Label(std::vector<RunNumbers>& runs);

// "from draw 120 on, none after draw 300, 3 NaN": what a metric's statistics do not show; empty for nothing.
std::string Remarks(const Summary& summary, std::int64_t first_draw);

// Names of the scalar metrics of all runs, those of the first run first, in the order of its file. Statistics over
// ranks are left out: dt_mean, dt_min, dt_max and dt_std if there is dt (MeanOfSpread).
std::vector<std::string> MetricNames(absl::Span<const RunNumbers> runs);

// The numbers of the first run that has values of the metric, else of the first that has the metric; nullptr if none
// has. Plots of several runs are in its units.
const MetricNumbers* FirstNumbers(absl::Span<const RunNumbers> runs, const std::string& name);

// "dt" for dt_mean, dt_min, dt_max and dt_std if the run has dt as well and their statistic says that they are over
// ranks ("minimum over ranks"), else "".
std::string MeanOfSpread(const RunNumbers& run, const std::string& name);

// The most important metrics with values: loss, dt, dtf, dtb, sps, sps_world and accuracy, also with the prefix train_
// or train/; if there are none, the first three metrics.
std::vector<std::string> MainMetrics(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_RUN_NUMBERS_H_
