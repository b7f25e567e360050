// Time points, levels, and their distribution over ranks.
//
// Level 0 has the points 0 ... N. A rank owns consecutive *steps* and stores both end points of each: the first
// point of its range is a ghost, a copy of the point that its left neighbour computes. Point i of level l + 1 is
// the C-point i * cfactor of level l and belongs to the rank that computes it on level l, so restriction and
// interpolation need no communication. Points after the last C-point of a level are F-points.
#ifndef PLAIT_MGRIT_GRID_H_
#define PLAIT_MGRIT_GRID_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "mgrit/options.h"
#include "mgrit/problem.h"

namespace plait::mgrit {

// A time grid: uniform, t_i = start + i (stop - start) / steps, unless `points` is set. A coarse step covers the
// fine steps between its end points.
struct TimeGrid {
  double start = 0;
  double stop = 1;
  std::int64_t steps = 1;
  std::shared_ptr<const std::vector<double>> points = nullptr;  // t_0 ... t_N; made by FromPoints

  // INVALID_ARGUMENT unless there are at least two points, finite and strictly increasing. Local.
  static absl::StatusOr<TimeGrid> FromPoints(std::vector<double> points);
  double At(std::int64_t point) const;
};

// The grid of the times -t_N ... -t_0, for the adjoint of a problem on `grid`.
TimeGrid Reversed(const TimeGrid& grid);

// Ranges of fine steps, by position from the left: position p owns [bounds[p], bounds[p + 1]).
// Position p is rank p, or, mirrored (for the adjoint, which runs from right to left), rank size - 1 - p.
class Partition {
 public:
  // Distributes whole C-intervals of level 0 as evenly as possible, or single steps if there are fewer intervals
  // than ranks. Among equally even partitions, uses whole intervals of the coarsest level that allows it, so that
  // relaxation waits for no neighbour on these levels. The program ends if a coarsening factor is below 2.
  static Partition Even(std::int64_t steps, int ranks, const Options& options);
  // As Even, but never splits a C-interval of level 0: with fewer intervals than ranks, some ranks own nothing.
  static Partition OfWholeIntervals(std::int64_t steps, int ranks, const Options& options);
  // The position that owns a step.
  int OwnerPosition(std::int64_t step) const;
  // The same distribution with time reversed: step s becomes step N - 1 - s.
  Partition Mirrored() const;

  int positions() const { return static_cast<int>(bounds_.size()) - 1; }
  int RankAt(int position) const { return mirrored_ ? positions() - 1 - position : position; }
  int PositionOf(int rank) const { return RankAt(rank); }
  std::int64_t first_step(int position) const { return bounds_[position]; }
  std::int64_t last_step(int position) const { return bounds_[position + 1]; }  // one past

 private:
  static Partition InUnits(std::int64_t steps, int ranks, std::int64_t unit);

  std::vector<std::int64_t> bounds_;
  bool mirrored_ = false;
};

// One level as one rank sees it.
struct GridLevel {
  int level = 0;
  std::int64_t steps = 0;    // of the whole level
  std::int64_t cfactor = 0;  // to the next coarser level; the coarsest has one interval: steps + 1
  std::int64_t stride = 1;   // fine steps in a step of this level
  std::int64_t first = 0;    // own steps are first ... last - 1, own points first (a ghost) ... last
  std::int64_t last = 0;
  int left_rank = -1;  // the neighbours that own steps of this level; -1 if there is none
  int right_rank = -1;

  bool empty() const { return first == last; }
  bool is_c_point(std::int64_t point) const { return point % cfactor == 0; }
  std::int64_t c_intervals() const { return steps / cfactor; }
  // Own C-intervals, whole or in part: those with an own step. C-interval q spans the points
  // q * cfactor ... (q + 1) * cfactor; the last one of the level may be cut short.
  std::int64_t first_interval() const { return first / cfactor; }
  std::int64_t last_interval() const {
    return empty() ? first_interval() : (last - 1) / cfactor + 1;
  }  // one past
  std::int64_t local(std::int64_t point) const { return point - first; }
};

class Grid {
 public:
  Grid(const TimeGrid& time, const Options& options, Partition partition, int rank);

  int levels() const { return static_cast<int>(levels_.size()); }
  const GridLevel& level(int index) const { return levels_[index]; }
  const Partition& partition() const { return partition_; }
  const TimeGrid& time() const { return time_; }
  StepInterval Interval(int level, std::int64_t step) const;

 private:
  TimeGrid time_;
  Partition partition_;
  std::vector<GridLevel> levels_;
};

// Number of levels that `options` yield for `steps` steps on level 0: at most max_levels.
int LevelCount(const Options& options, std::int64_t steps);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_GRID_H_
