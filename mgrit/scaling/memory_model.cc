#include "mgrit/scaling/memory_model.h"

#include <set>
#include <utility>
#include <vector>

#include "mgrit/adjoint.h"
#include "mgrit/scaling/cycle_replay.h"

namespace plait::mgrit::scaling {
namespace {

// Of a level: whether it has right-hand sides, and also those of the previous visit.
struct RightHandSides {
  bool present = false, before = false;
  // As Hierarchy::Restrict, which swaps them if the previous ones are still needed.
  void Form(bool known) {
    if (known) std::swap(present, before);
    present = true;
  }
};

// Adds the states of a solve.
void AddSolve(const Options& options, const Grid& grid, int rank, Propagation propagation,
              const std::function<void(int level, std::int64_t index)>& at_step, RankMemory& memory) {
  std::vector<RightHandSides> sides(static_cast<std::size_t>(grid.levels()));
  std::set<int> sends;
  CycleObserver observer = {
      .step = [&](int level, std::int64_t index, bool) { at_step(level, index); },
      .send = [&](int level, int) { sends.insert(level); },
      .receive = [](int, int) {},
      .all_reduce = [](std::int64_t) {},
      .restrict = [&](int level, bool known) { sides[static_cast<std::size_t>(level)].Form(known); }};
  for (int pass = 0; pass < 2; ++pass) CycleReplay(options, grid, rank, observer).Solve(propagation);
  constexpr std::int64_t kScratchAndResidual = 3;
  memory.work += static_cast<std::int64_t>(sends.size());
  for (int index = 0; index < grid.levels(); ++index) {
    const GridLevel& level = grid.level(index);
    if (level.empty()) continue;
    const RightHandSides& own = sides[static_cast<std::size_t>(index)];
    const std::int64_t steps = level.last - level.first;
    memory.points += steps;
    memory.right_hand_sides += steps * (static_cast<int>(own.present) + static_cast<int>(own.before));
    memory.ghosts += 1;
    memory.work += kScratchAndResidual;
  }
}

}  // namespace

RankMemory MemoryOf(const BatchShape& shape, int rank) {
  const Partition partition = Partition::OfWholeIntervals(shape.steps, shape.ranks, shape.solver.forward);
  const TimeGrid time = {.start = 0, .stop = 1, .steps = shape.steps};
  Options forward = shape.solver.forward, backward = shape.solver.backward;
  forward.final_relaxation = backward.final_relaxation = FinalRelaxation::kAllPoints;
  const Grid grid(time, forward, partition, rank),
      mirrored(Reversed(time), backward, partition.Mirrored(), rank);
  const auto keeps = [&](std::int64_t step) {
    return !shape.solver.recomputes || !shape.solver.recomputes(step);
  };
  RankMemory memory = {.ends = shape.wants_input_gradient ? 4 : 3};
  AddSolve(
      forward, grid, rank, shape.propagation, [](int, std::int64_t) {}, memory);
  // Coarse adjoint steps record the step that they transpose.
  std::set<std::pair<int, std::int64_t>> coarse;
  const auto at_step = [&](int level, std::int64_t index) {
    const std::int64_t step = ForwardInterval(mirrored.Interval(level, index), time).fine_start;
    if (level > 0 && keeps(step)) coarse.insert({level, step});
  };
  AddSolve(backward, mirrored, rank, shape.propagation, at_step, memory);
  memory.results = memory.calls = static_cast<std::int64_t>(coarse.size());
  const GridLevel& fine = grid.level(0);
  const bool serial = shape.propagation == Propagation::kSerial || grid.levels() == 1;
  for (std::int64_t step = fine.first; step < fine.last; ++step) {
    if (!keeps(step)) continue;
    ++memory.calls;
    memory.results += !serial && fine.is_c_point(step + 1);
  }
  return memory;
}

}  // namespace plait::mgrit::scaling
