// F-sweeps and FC-sweeps.
#include <algorithm>
#include <vector>

#include "mgrit/hierarchy.h"
#include "mgrit/level.h"
#include "mgrit/stopwatch.h"

namespace plait::mgrit {

StepInterval Hierarchy::IntervalOf(const Level& level, std::int64_t index) const {
  StepInterval interval = grid_.Interval(level.grid.level, index);
  // The F-points of the first interval depend on u_0 only: steps to them are always final.
  const bool from_given_state = level.grid.level == 0 && index + 1 < level.grid.cfactor && !options_.periodic;
  interval.final = final_sweep_ || from_given_state;
  interval.iteration = iteration_;
  interval.progress = progress_;
  interval.iterate = IterateAt(level, index + 1);
  return interval;
}

// With Storage::kCPoints, some ranks store an F-point at the end of their range: it is not passed to steps, so that
// results do not depend on the ranks.
const State* Hierarchy::IterateAt(const Level& level, std::int64_t point) const {
  const bool f_point = !level.grid.is_c_point(point);
  const std::size_t interval = level.interval((point - 1) / level.grid.cfactor);
  if (f_point && !(level.stores_f_points && level.has_f_states[interval])) return nullptr;
  return level.u[level.grid.local(point)].get();
}

void Hierarchy::Step(Level& level, std::int64_t index, const State& u, State& out) {
  const bool own_equation = problem_.HasEquation() && !level.homogeneous;
  {
    const Stopwatch watch(work_.step_seconds);
    if (own_equation) {
      problem_.StepWithRightHandSide(IntervalOf(level, index), u, *level.g[level.grid.local(index + 1)], out);
    } else {
      problem_.Step(IntervalOf(level, index), u, out);
    }
  }
  ++work_.steps[level.grid.level];
  if (!own_equation) CompleteStep(level, index, u, out);
}

void Hierarchy::CompleteStep(Level& level, std::int64_t index, const State& u, State& out) {
  if (!level.homogeneous && !level.deltas.empty()) AddDelta(level, index + 1, u, out);
  AddRightHandSide(level, index + 1, out);
}

void Hierarchy::AddRightHandSide(Level& level, std::int64_t point, State& u) {
  if (level.homogeneous) return;
  problem_.Combine(1.0, *level.g[level.grid.local(point)], 1.0, u);
}

const State& Hierarchy::March(Level& level, std::int64_t interval, const AtPoint& at_passing_point) {
  const GridLevel& grid = level.grid;
  const std::int64_t c_point = interval * grid.cfactor;
  const std::int64_t begin = std::max(c_point, grid.first);
  const std::int64_t end = std::min(c_point + grid.cfactor - 1, grid.last);
  const std::size_t own = level.interval(interval);
  if (level.relaxed[own]) return level.point(end);

  State* before = level.u[grid.local(begin)].get();
  for (std::int64_t point = begin + 1; point <= end; ++point) {
    State* u = level.u[grid.local(point)].get();
    const bool passes = u == nullptr;
    if (passes) u = level.scratch[point % 2].get();
    const bool known = level.first_known[own] && point == c_point + 1;
    if (!known) Step(level, point - 1, *before, *u);
    if (passes && at_passing_point) at_passing_point(point, *u);
    before = u;
  }
  level.first_known[own] = 0;
  level.relaxed[own] = level.stores_f_points;
  level.has_f_states[own] = 1;
  return *before;
}

void Hierarchy::MarchTogether(Level& level) {
  const GridLevel& grid = level.grid;
  std::vector<std::int64_t> intervals;
  for (std::int64_t q = grid.first_interval(); q < grid.last_interval(); ++q) {
    const bool whole = q * grid.cfactor >= grid.first && (q + 1) * grid.cfactor <= grid.last;
    if (whole) intervals.push_back(q);
  }
  level.step_to_c_point.resize(level.relaxed.size());
  std::vector<StepTask> tasks;
  for (std::int64_t offset = 1; offset <= grid.cfactor && !intervals.empty(); ++offset) {
    tasks.clear();
    for (std::int64_t q : intervals) {
      const std::int64_t point = q * grid.cfactor + offset;
      const std::size_t own = level.interval(q);
      const bool c_point = offset == grid.cfactor;
      if (!c_point && (level.relaxed[own] || (offset == 1 && level.first_known[own]))) continue;
      auto& c_step = level.step_to_c_point[own];
      if (c_point && c_step == nullptr) c_step = problem_.NewState(grid.level);
      State* out = c_point ? c_step.get() : level.u[grid.local(point)].get();
      tasks.push_back({IntervalOf(level, point - 1), level.u[grid.local(point - 1)].get(), out});
    }
    if (tasks.empty()) continue;
    {
      const Stopwatch watch(work_.step_seconds);
      problem_.StepMany(tasks);
    }
    work_.steps[grid.level] += static_cast<std::int64_t>(tasks.size());
    for (const StepTask& task : tasks) CompleteStep(level, task.interval.index, *task.u, *task.out);
  }
  for (std::int64_t q : intervals) {
    level.relaxed[level.interval(q)] = 1;
    level.has_f_states[level.interval(q)] = 1;
    level.first_known[level.interval(q)] = 0;
  }
  level.c_steps_known = true;
}

void Hierarchy::Sweep(Level& level, std::int64_t first_interval, const AtPoint& at_c_point,
                      const AtPoint& at_passing_point) {
  const GridLevel& grid = level.grid;
  if (grid.empty()) return;
  const bool together = at_c_point && problem_.PrefersMany() && !problem_.HasEquation() &&
                        options_.storage == Storage::kAllPoints;
  if (together) MarchTogether(level);
  // In an interval that two ranks share, the right part starts from the last point of the left part.
  const bool ghost_is_f_point = grid.left_rank >= 0 && !grid.is_c_point(grid.first);
  const bool last_is_f_point = grid.right_rank >= 0 && !grid.is_c_point(grid.last);
  for (std::int64_t q = grid.last_interval() - 1; q >= std::max(first_interval, grid.first_interval()); --q) {
    const std::int64_t c_point = (q + 1) * grid.cfactor;
    if (at_c_point && c_point > grid.steps)
      continue;  // F-points after the last C-point, on which nothing depends
    if (q == grid.first_interval() && ghost_is_f_point) Receive(level);
    const State& before = March(level, q, at_passing_point);
    if (q == grid.last_interval() - 1 && last_is_f_point) Send(level);
    if (at_c_point && c_point <= grid.last) at_c_point(c_point, before);
  }
  level.c_steps_known = false;
}

void Hierarchy::StepToCPoint(Level& level, std::int64_t point, const State& before, State& out) {
  State* known = nullptr;
  if (level.c_steps_known)
    known = level.step_to_c_point[level.interval((point - 1) / level.grid.cfactor)].get();
  const bool whole = (point - level.grid.cfactor) >= level.grid.first;
  if (known != nullptr && whole) {
    problem_.Copy(*known, out);
  } else {
    Step(level, point - 1, before, out);
  }
}

void Hierarchy::RelaxFrom(std::int64_t first_interval) {
  final_sweep_ = true;
  Sweep(at(0), first_interval, nullptr, nullptr);
  final_sweep_ = false;
}

void Hierarchy::FcSweep(int index) {
  Level& level = at(index);
  const double weight = AtLevel(options_.c_weights, index);
  Sweep(level, 0, [&](std::int64_t point, const State& before) {
    if (weight == 1.0) {
      StepToCPoint(level, point, before, level.point(point));
    } else {
      StepToCPoint(level, point, before, *level.residual);
      problem_.Combine(weight, *level.residual, 1.0 - weight, level.point(point));
    }
    if (point == level.grid.last && level.grid.right_rank >= 0) Send(level);
  });
  CPointsChanged(level);
  if (index + 1 < levels()) at(index + 1).unchanged_above = false;
  ReceiveCPoint(level);
}

void Hierarchy::ReceiveCPoint(Level& level) {
  const GridLevel& grid = level.grid;
  if (!grid.empty() && grid.left_rank >= 0 && grid.is_c_point(grid.first)) Receive(level);
}

void Hierarchy::CPointsChanged(Level& level) {
  const std::int64_t given = options_.periodic ? 0 : 1;  // u_0 and what follows from it
  for (std::int64_t q = std::max<std::int64_t>(given, level.grid.first_interval());
       q < level.grid.last_interval(); ++q) {
    level.relaxed[level.interval(q)] = 0;
    level.first_known[level.interval(q)] = 0;
  }
}

void Hierarchy::SerialSweep() {
  Level& level = at(0);
  const GridLevel& grid = level.grid;
  if (grid.empty()) return;
  if (grid.left_rank >= 0) Receive(level);
  State* before = &level.point(grid.first);
  final_sweep_ = true;
  for (std::int64_t point = grid.first + 1; point <= grid.last; ++point) {
    State* u = level.u[grid.local(point)].get();
    if (u == nullptr) u = level.scratch[point % 2].get();
    Step(level, point - 1, *before, *u);
    before = u;
  }
  final_sweep_ = false;
  if (grid.right_rank >= 0) Send(level);
  std::fill(level.relaxed.begin(), level.relaxed.end(), level.stores_f_points);
}

void Hierarchy::Visit(const std::function<void(std::int64_t, const State&)>& visitor, bool final) {
  Level& level = at(0);
  const GridLevel& grid = level.grid;
  const bool ghost_is_f_point = grid.left_rank >= 0 && !grid.is_c_point(grid.first);
  const bool last_is_f_point = grid.right_rank >= 0 && !grid.is_c_point(grid.last);
  final_sweep_ = final;
  for (std::int64_t q = grid.last_interval() - 1; q >= grid.first_interval(); --q) {
    const bool relaxed = level.relaxed[level.interval(q)];  // the same on all ranks that share the interval
    if (!relaxed && q == grid.first_interval() && ghost_is_f_point) Receive(level);
    VisitInterval(level, q, visitor);
    if (!relaxed && q == grid.last_interval() - 1 && last_is_f_point) Send(level);
  }
  final_sweep_ = false;
  FinishMessages();
  if (grid.first == 0 && !grid.empty()) visitor(0, *level.u[grid.local(0)]);
}

void Hierarchy::VisitInterval(Level& level, std::int64_t interval,
                              const std::function<void(std::int64_t, const State&)>& visitor) {
  const GridLevel& grid = level.grid;
  const bool relaxed = level.relaxed[level.interval(interval)];
  const std::int64_t begin = std::max(interval * grid.cfactor, grid.first);
  const std::int64_t end = std::min((interval + 1) * grid.cfactor, grid.last);
  State* before = level.u[grid.local(begin)].get();
  for (std::int64_t point = begin + 1; point <= end; ++point) {
    State* u = level.u[grid.local(point)].get();
    if (u == nullptr) u = level.scratch[point % 2].get();
    if (!relaxed && !grid.is_c_point(point)) Step(level, point - 1, *before, *u);
    visitor(point, *u);
    before = u;
  }
}

}  // namespace plait::mgrit
