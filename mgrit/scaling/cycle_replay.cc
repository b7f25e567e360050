#include "mgrit/scaling/cycle_replay.h"

#include <algorithm>
#include <utility>

namespace plait::mgrit::scaling {

CycleReplay::CycleReplay(const Options& options, Grid grid, int rank, CycleObserver observer)
    : options_(options), partition_(grid.partition()), rank_(rank), observer_(std::move(observer)) {
  for (int index = 0; index < grid.levels(); ++index) {
    Level level;
    level.grid = grid.level(index);
    level.relaxed.assign(level.grid.last_interval() - level.grid.first_interval(), 0);
    level.first_known = level.relaxed;
    levels_.push_back(std::move(level));
  }
}

void CycleReplay::Solve(Propagation propagation) {
  ShareInitialState();
  if (propagation == Propagation::kSerial || levels() == 1) SerialSweep();
  // Whether the final state is finite.
  if (propagation == Propagation::kSerial) observer_.all_reduce(1);
  if (propagation == Propagation::kSerial || levels() == 1) return;
  for (int iteration = 0; iteration < options_.max_iterations; ++iteration) Iterate(iteration);
  FinalRelaxation();
}

void CycleReplay::SerialSweep() {
  const Level& level = levels_[0];
  const GridLevel& grid = level.grid;
  final_sweep_ = true;
  if (!grid.empty() && grid.left_rank >= 0) Receive(level);
  for (std::int64_t step = grid.first; step < grid.last; ++step) Step(level, step);
  if (!grid.empty() && grid.right_rank >= 0) Send(level);
  final_sweep_ = false;
}

void CycleReplay::ShareInitialState() {
  const int source = partition_.RankAt(partition_.OwnerPosition(0));
  for (int index = 1; index < levels(); ++index) {
    const int owner = partition_.RankAt(partition_.OwnerPosition(levels_[index].grid.stride - 1));
    if (owner == source) continue;
    if (rank_ == source) observer_.send(index, owner);
    if (rank_ == owner) observer_.receive(index, source);
  }
}

void CycleReplay::Iterate(int iteration) {
  const bool at_restriction = options_.residual_time == ResidualTime::kRestriction;
  if (iteration == 0 && options_.skip_downcycle) {
    RunFirstCycleFromCoarsest();
    if (at_restriction) return;
  } else {
    RunCycle(0, CycleOf(iteration));
  }
  if (options_.residual_time == ResidualTime::kNever) return;
  if (!at_restriction) {
    Sweep(levels_[0], 0, [&](std::int64_t point) { Step(levels_[0], point - 1); });
  }
  observer_.all_reduce(levels_[0].grid.c_intervals());
}

void CycleReplay::RunCycle(int level, Cycle cycle) {
  const int coarse = level + 1;
  for (int sweep = 0; sweep < AtLevel(options_.cf_sweeps, level); ++sweep) FcSweep(level);
  Restrict(level);
  if (coarse + 1 < levels()) {
    RunCycle(coarse, cycle);
    if (cycle == Cycle::kW) RunCycle(coarse, Cycle::kW);
    for (int v = 0; cycle == Cycle::kF && v < options_.fmg_v_cycles; ++v) RunCycle(coarse, Cycle::kV);
  }
  Interpolate(coarse);
}

void CycleReplay::RunFirstCycleFromCoarsest() {
  RestrictGuess();
  for (int level = levels() - 1; level > 0; --level) {
    const bool inner = level + 1 < levels();
    for (int v = 0; inner && CycleOf(0) == Cycle::kF && v < options_.fmg_v_cycles; ++v)
      RunCycle(level, Cycle::kV);
    Interpolate(level);
  }
}

Cycle CycleReplay::CycleOf(int iteration) const {
  const bool fmg = options_.fmg && (options_.fmg_iterations < 0 || iteration < options_.fmg_iterations);
  return fmg ? Cycle::kF : options_.cycle;
}

void CycleReplay::Step(const Level& level, std::int64_t index) {
  const bool first_interval = level.grid.level == 0 && index + 1 < level.grid.cfactor;
  observer_.step(level.grid.level, index, final_sweep_ || first_interval);
}

void CycleReplay::March(const Level& level, std::int64_t interval) {
  const GridLevel& grid = level.grid;
  const std::int64_t c_point = interval * grid.cfactor;
  const std::size_t own = level.interval(interval);
  if (level.relaxed[own]) return;
  const std::int64_t end = std::min(c_point + grid.cfactor - 1, grid.last);
  for (std::int64_t point = std::max(c_point, grid.first) + 1; point <= end; ++point) {
    if (!(level.first_known[own] && point == c_point + 1)) Step(level, point - 1);
  }
}

void CycleReplay::Sweep(Level& level, std::int64_t first_interval, const AtCPoint& at_c_point) {
  const GridLevel& grid = level.grid;
  if (grid.empty()) return;
  const bool ghost_is_f_point = grid.left_rank >= 0 && !grid.is_c_point(grid.first);
  const bool last_is_f_point = grid.right_rank >= 0 && !grid.is_c_point(grid.last);
  for (std::int64_t q = grid.last_interval() - 1; q >= std::max(first_interval, grid.first_interval()); --q) {
    const std::int64_t c_point = (q + 1) * grid.cfactor;
    if (at_c_point && c_point > grid.steps) continue;
    if (q == grid.first_interval() && ghost_is_f_point) Receive(level);
    March(level, q);
    level.first_known[level.interval(q)] = 0;
    level.relaxed[level.interval(q)] = 1;
    if (q == grid.last_interval() - 1 && last_is_f_point) Send(level);
    if (at_c_point && c_point <= grid.last) at_c_point(c_point);
  }
}

void CycleReplay::FcSweep(int index) {
  Level& level = levels_[index];
  Sweep(level, 0, [&](std::int64_t point) {
    Step(level, point - 1);
    if (point == level.grid.last && level.grid.right_rank >= 0) Send(level);
  });
  CPointsChanged(level);
  if (index + 1 < levels()) levels_[index + 1].unchanged_above = false;
  ReceiveCPoint(level);
}

void CycleReplay::ReceiveCPoint(const Level& level) {
  const GridLevel& grid = level.grid;
  if (!grid.empty() && grid.left_rank >= 0 && grid.is_c_point(grid.first)) Receive(level);
}

void CycleReplay::CPointsChanged(Level& level) {
  for (std::int64_t q = std::max<std::int64_t>(1, level.grid.first_interval());
       q < level.grid.last_interval(); ++q) {
    level.relaxed[level.interval(q)] = 0;
    level.first_known[level.interval(q)] = 0;
  }
}

void CycleReplay::Restrict(int index) {
  Level& fine = levels_[index];
  Level& coarse = levels_[index + 1];
  if (observer_.restrict) observer_.restrict(index + 1, coarse.unchanged_above);
  Sweep(fine, 0, [&](std::int64_t point) {
    Step(fine, point - 1);
    const bool last = point / fine.grid.cfactor == coarse.grid.last;
    if (last && coarse.grid.right_rank >= 0) Send(coarse);
  });
  if (index + 2 < levels() && !coarse.unchanged_above) levels_[index + 2].unchanged_above = false;
  FormCoarseEquations(coarse);
}

void CycleReplay::FormCoarseEquations(Level& coarse) {
  const GridLevel& grid = coarse.grid;
  if (grid.empty()) return;
  if (grid.left_rank >= 0) Receive(coarse);
  std::fill(coarse.relaxed.begin(), coarse.relaxed.end(), 0);
  for (std::int64_t k = grid.last; k > grid.first; --k) {
    if (!coarse.unchanged_above || grid.is_c_point(k)) Step(coarse, k - 1);
    if (!grid.is_c_point(k - 1)) continue;
    coarse.first_known[coarse.interval((k - 1) / grid.cfactor)] = !grid.is_c_point(k);
  }
}

void CycleReplay::RestrictGuess() {
  for (int index = 1; index < levels(); ++index) {
    std::fill(levels_[index].relaxed.begin(), levels_[index].relaxed.end(), 0);
    std::fill(levels_[index].first_known.begin(), levels_[index].first_known.end(), 0);
  }
}

void CycleReplay::Interpolate(int index) {
  Sweep(levels_[index], 0, nullptr);
  Level& fine = levels_[index - 1];
  CPointsChanged(fine);
  levels_[index].unchanged_above = true;
  const GridLevel& grid = fine.grid;
  if (!grid.empty() && grid.right_rank >= 0 && grid.is_c_point(grid.last)) Send(fine);
  ReceiveCPoint(fine);
}

void CycleReplay::FinalRelaxation() {
  if (options_.final_relaxation == FinalRelaxation::kNone) return;
  const GridLevel& fine = levels_[0].grid;
  const bool all = options_.final_relaxation == FinalRelaxation::kAllPoints;
  final_sweep_ = true;
  Sweep(levels_[0], all ? 0 : (fine.steps - 1) / fine.cfactor, nullptr);
  final_sweep_ = false;
}

}  // namespace plait::mgrit::scaling
