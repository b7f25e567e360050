// Sums over the optimizer steps of a draw, per step.
//
// A draw of train_gpt is a step, one of train_cnn an epoch. The history's metric `step` counts the steps done.
// Local.
#ifndef PLAIT_TOOLS_REPORT_PARTS_STEPS_PER_DRAW_H_
#define PLAIT_TOOLS_REPORT_PARTS_STEPS_PER_DRAW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/history/history_table.h"
#include "tools/report_parts/summary.h"

namespace plait::report {

// Steps that the run had done before the first draw of this file: more than zero if it was resumed in a new one.
std::int64_t BeganAtStep(const data::HistoryTable& table);

// How many steps each draw covers. NaN where that is unknown: behind lost draws, and for the first draw after a resume,
// as some sums include the steps before the interruption. Empty: the file does not count steps.
absl::StatusOr<std::vector<double>> StepsPerDraw(const data::HistoryTable& table);

// Whether the metric is a sum over the steps of a draw: messages (comm_...), and a time whose long name speaks
// of an epoch or of "since the last ...". A time of one step, as of train_gpt, is none, however far draws are apart.
bool IsSumOverSteps(const data::TableMetric& metric);

// Of values[draw] / steps[draw], without draws of unknown steps. The mean is over steps, not draws.
Summary SummarizePerStep(std::vector<double> values, absl::Span<const double> steps);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_STEPS_PER_DRAW_H_
