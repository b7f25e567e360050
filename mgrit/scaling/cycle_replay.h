// Replays one solve of Solver on one rank without states: its steps, sends and receives, in the solver's order. Private
// to work_trace and memory_model.
#ifndef PLAIT_MGRIT_SCALING_CYCLE_REPLAY_H_
#define PLAIT_MGRIT_SCALING_CYCLE_REPLAY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "mgrit/grid.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/options.h"

namespace plait::mgrit::scaling {

struct CycleObserver {
  std::function<void(int level, std::int64_t index, bool final)> step;
  std::function<void(int level, int rank)> send;
  std::function<void(int level, int rank)> receive;
  std::function<void(std::int64_t values)> all_reduce;
  // The equations of `level` are formed; `known`: the previous ones are still needed (Hierarchy::Level::g_before). May
  // be empty.
  std::function<void(int level, bool known)> restrict = {};
};

class CycleReplay {
 public:
  CycleReplay(const Options& options, Grid grid, int rank, CycleObserver observer);

  void Solve(Propagation propagation);

 private:
  // The flags of mgrit/level.h that decide what is computed.
  struct Level {
    GridLevel grid;
    bool unchanged_above = false;
    std::vector<char> relaxed;
    std::vector<char> first_known;
    std::size_t interval(std::int64_t q) const { return static_cast<std::size_t>(q - grid.first_interval()); }
  };
  using AtCPoint = std::function<void(std::int64_t point)>;

  int levels() const { return static_cast<int>(levels_.size()); }
  void SerialSweep();
  void ShareInitialState();
  void Iterate(int iteration);
  void RunCycle(int level, Cycle cycle);
  void RunFirstCycleFromCoarsest();
  void March(const Level& level, std::int64_t interval);
  void Sweep(Level& level, std::int64_t first_interval, const AtCPoint& at_c_point);
  void FcSweep(int level);
  void Restrict(int level);
  void FormCoarseEquations(Level& coarse);
  void RestrictGuess();
  void Interpolate(int level);
  void CPointsChanged(Level& level);
  void ReceiveCPoint(const Level& level);
  void FinalRelaxation();

  void Step(const Level& level, std::int64_t index);
  void Send(const Level& level) { observer_.send(level.grid.level, level.grid.right_rank); }
  void Receive(const Level& level) { observer_.receive(level.grid.level, level.grid.left_rank); }
  Cycle CycleOf(int iteration) const;

  Options options_;
  Partition partition_;
  int rank_;
  CycleObserver observer_;
  std::vector<Level> levels_;
  bool final_sweep_ = false;
};

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_CYCLE_REPLAY_H_
