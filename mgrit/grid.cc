#include "mgrit/grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace plait::mgrit {
namespace {

// The bound of a position on a coarse level: a coarse step belongs to the position that owns its last fine step.
std::int64_t CoarseBound(std::int64_t fine_bound, std::int64_t stride, std::int64_t coarse_steps) {
  return std::min(fine_bound / stride, coarse_steps);
}

int NearestOwner(const Partition& partition, int position, int direction, std::int64_t stride,
                 std::int64_t steps) {
  for (int p = position + direction; p >= 0 && p < partition.positions(); p += direction) {
    const auto first = CoarseBound(partition.first_step(p), stride, steps);
    const auto last = CoarseBound(partition.last_step(p), stride, steps);
    if (first < last) return partition.RankAt(p);
  }
  return -1;
}

// The largest number of steps of a rank if steps are distributed in units of `unit`; the last unit may be shorter.
std::int64_t LargestShare(std::int64_t steps, int ranks, std::int64_t unit) {
  const std::int64_t units = (steps + unit - 1) / unit;
  return std::min(steps, (units + ranks - 1) / ranks * unit);
}

// Periodic: the owners of the first and the last step of a level are neighbours; they may be the same rank.
void CloseRing(const Partition& partition, GridLevel& level) {
  if (level.empty()) return;
  if (level.first == 0)
    level.left_rank = partition.RankAt(partition.OwnerPosition(level.steps * level.stride - 1));
  if (level.last == level.steps)
    level.right_rank = partition.RankAt(partition.OwnerPosition(level.stride - 1));
}

// The stride of the coarsest level whose intervals can be distributed as evenly as those of level 1.
std::int64_t LargestEvenUnit(std::int64_t steps, int ranks, const Options& options) {
  const int levels = LevelCount(options, steps);
  std::int64_t unit = 1;
  std::int64_t stride = 1;
  for (int level = 0; level + 1 < levels; ++level) {
    stride *= AtLevel(options.cfactors, level);
    const bool as_even = unit == 1 || LargestShare(steps, ranks, stride) <= LargestShare(steps, ranks, unit);
    if (steps / stride >= ranks && as_even) unit = stride;
  }
  return unit;
}

const Options& WithCheckedFactors(const Options& options) {
  PLAIT_CHECK(!options.cfactors.empty()) << "cfactors needs at least one entry";
  for (int factor : options.cfactors) {
    PLAIT_CHECK(factor >= 2) << "coarsening factor " << factor << " is too small: use 2 or more";
  }
  return options;
}

absl::Status ValidatePeriod(const Options& options, std::int64_t steps) {
  if (options.max_levels < 2) {
    return absl::InvalidArgumentError(
        "a periodic solve needs at least 2 levels: one serial sweep does not close the period");
  }
  std::int64_t stride = 1;
  for (int level = 0; level + 1 < options.max_levels; ++level) stride *= AtLevel(options.cfactors, level);
  if (steps % stride == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "a period of %d steps on %d levels: the coarsening factors must divide the steps of every "
      "level; use a multiple of %d steps",
      steps, options.max_levels, stride));
}

}  // namespace

absl::StatusOr<TimeGrid> TimeGrid::FromPoints(std::vector<double> points) {
  if (points.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a time grid needs at least 2 points, has %d", points.size()));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(points[i]) && (i == 0 || points[i] > points[i - 1])) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("the points of a time grid must be finite and increase: point %d is %g%s", i,
                        points[i], i == 0 ? "" : absl::StrFormat(" after %g", points[i - 1])));
  }
  TimeGrid grid = {
      .start = points.front(), .stop = points.back(), .steps = static_cast<std::int64_t>(points.size()) - 1};
  grid.points = std::make_shared<const std::vector<double>>(std::move(points));
  return grid;
}

TimeGrid Reversed(const TimeGrid& grid) {
  TimeGrid reversed = {.start = -grid.stop, .stop = -grid.start, .steps = grid.steps};
  if (grid.points == nullptr) return reversed;
  std::vector<double> points(grid.points->rbegin(), grid.points->rend());
  for (double& t : points) t = -t;
  reversed.points = std::make_shared<const std::vector<double>>(std::move(points));
  return reversed;
}

double TimeGrid::At(std::int64_t point) const {
  if (points != nullptr) return (*points)[static_cast<std::size_t>(point)];
  // Evaluated in this order, integer times are exact.
  return start + static_cast<double>(point) * (stop - start) / static_cast<double>(steps);
}

int LevelCount(const Options& options, std::int64_t steps) {
  int levels = 1;
  while (levels < options.max_levels) {
    steps /= AtLevel(options.cfactors, levels - 1);
    if (steps < options.min_coarse_steps) break;
    ++levels;
  }
  return levels;
}

absl::Status Validate(const Options& options, std::int64_t steps) {
  if (steps < 1) return absl::InvalidArgumentError("the time grid has no step; at least 1 is needed");
  if (options.max_levels < 1) return absl::InvalidArgumentError("the number of levels must be at least 1");
  if (options.cfactors.empty() || options.cf_sweeps.empty() || options.c_weights.empty()) {
    return absl::InvalidArgumentError("cfactors, cf_sweeps and c_weights need at least one entry each");
  }
  for (int factor : options.cfactors) {
    if (factor >= 2) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("coarsening factor %d is too small: use 2 or more", factor));
  }
  for (int sweeps : options.cf_sweeps) {
    if (sweeps < 0) return absl::InvalidArgumentError("the number of CF-sweeps must not be negative");
  }
  if (options.min_coarse_steps < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a coarse level needs at least 1 step: min_coarse_steps is %d", options.min_coarse_steps));
  }
  if (!(options.tolerance >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the tolerance must be 0 (none) or more, is %g", options.tolerance));
  }
  if (options.c_point_levels < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("c_point_levels must be at least 1, is %d; to keep all points, choose that storage",
                        options.c_point_levels));
  }
  if (!(options.divergence_factor == 0 || options.divergence_factor > 1)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "divergence_factor must be 0 (none) or more than 1, is %g", options.divergence_factor));
  }
  if (options.stagnation_iterations < 0 ||
      !(options.stagnation_factor > 0 && options.stagnation_factor <= 1)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "stagnation_iterations must not be negative, is %d; stagnation_factor must be above 0 "
        "and at most 1, is %g",
        options.stagnation_iterations, options.stagnation_factor));
  }
  if (options.coarse_window < 0 || (options.coarse_window > 0 && options.max_levels < 2)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("coarse_window is %d on %d levels: expected 0 (none) or a number of steps of a "
                        "coarse level, of 2 or more",
                        options.coarse_window, options.max_levels));
  }
  if (options.delta_rank < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the rank of the delta correction must not be negative, is %d", options.delta_rank));
  }
  if (options.delta_rank > 0 && (options.storage == Storage::kCPoints || options.periodic)) {
    return absl::InvalidArgumentError(
        "the delta correction needs all points stored and a problem that is not periodic: set delta_rank to "
        "0, or "
        "storage to all points and periodic to false");
  }
  if (options.max_iterations < 1) return absl::InvalidArgumentError("at least 1 iteration is needed");
  const int fit = LevelCount(options, steps);
  if (fit == options.max_levels) return options.periodic ? ValidatePeriod(options, steps) : absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d levels with coarsening factor %d do not fit %d steps: at most %d levels do (or, with %d levels, a "
      "smaller "
      "factor)",
      options.max_levels, AtLevel(options.cfactors, fit - 1), steps, fit, options.max_levels));
}

Partition Partition::Even(std::int64_t steps, int ranks, const Options& options) {
  return InUnits(steps, ranks, LargestEvenUnit(steps, ranks, WithCheckedFactors(options)));
}

Partition Partition::OfWholeIntervals(std::int64_t steps, int ranks, const Options& options) {
  const std::int64_t interval =
      LevelCount(WithCheckedFactors(options), steps) > 1 ? AtLevel(options.cfactors, 0) : 1;
  return InUnits(steps, ranks, std::max(interval, LargestEvenUnit(steps, ranks, options)));
}

Partition Partition::InUnits(std::int64_t steps, int ranks, std::int64_t unit) {
  const std::int64_t units = (steps + unit - 1) / unit;
  Partition partition;
  for (int p = 0; p < ranks; ++p) partition.bounds_.push_back(std::min(steps, units * p / ranks * unit));
  partition.bounds_.push_back(steps);
  return partition;
}

int Partition::OwnerPosition(std::int64_t step) const {
  int position = 0;
  while (last_step(position) <= step) ++position;
  return position;
}

Partition Partition::Mirrored() const {
  Partition other;
  other.mirrored_ = !mirrored_;
  for (auto bound = bounds_.rbegin(); bound != bounds_.rend(); ++bound)
    other.bounds_.push_back(bounds_.back() - *bound);
  return other;
}

Grid::Grid(const TimeGrid& time, const Options& options, Partition partition, int rank)
    : time_(time), partition_(std::move(partition)) {
  const int levels = LevelCount(options, time.steps);
  const int position = partition_.PositionOf(rank);
  std::int64_t stride = 1;
  std::int64_t steps = time.steps;
  for (int index = 0; index < levels; ++index) {
    GridLevel level;
    level.level = index;
    level.steps = steps;
    level.stride = stride;
    level.cfactor = index + 1 < levels ? AtLevel(options.cfactors, index) : steps + 1;
    level.first = CoarseBound(partition_.first_step(position), stride, steps);
    level.last = CoarseBound(partition_.last_step(position), stride, steps);
    level.left_rank = NearestOwner(partition_, position, -1, stride, steps);
    level.right_rank = NearestOwner(partition_, position, +1, stride, steps);
    if (options.periodic) CloseRing(partition_, level);
    levels_.push_back(level);
    stride *= level.cfactor;
    steps /= level.cfactor;
  }
}

StepInterval Grid::Interval(int level, std::int64_t step) const {
  const std::int64_t stride = levels_[level].stride;
  StepInterval interval;
  interval.level = level;
  interval.index = step;
  interval.fine_start = step * stride;
  interval.fine_stop = (step + 1) * stride;
  interval.t_start = time_.At(interval.fine_start);
  interval.t_stop = time_.At(interval.fine_stop);
  return interval;
}

}  // namespace plait::mgrit
