// What a rank holds of a recorded pass of LayerParallel behind its backward, in states and recorded calls: a formula.
//
//   BatchShape shape = {.solver = MakeLayerParallelOptions(2, 4, 2, 1), .steps = 1024, .ranks = 64};
//   RankMemory memory = MemoryOf(shape, /*rank=*/5);
//   double bytes = memory.Bytes(state_bytes, call_bytes);
//
// A rank has n = steps / ranks steps of level 0, n / m of level 1, n / m^2 of level 2, ... With F-relaxation on level 0 and
// FCF- on the others, all with more than one iteration, that is
//
//   own     2 (n + n/m + n/m^2 + ...)   points of both solves
//         + 2 (2 n/m + n/m^2 + ...)     right-hand sides, of level 1 those of the visit before too
//         + (n/m + n/m + n/m^2 + ...)   results of recorded calls that are no states: to C-points, and on coarse levels
//   calls     n + n/m + n/m^2 + ...     whose activations are kept
//   fixed   2 (1 + 3 + 1) on each level: ghost, two states to work in, residual, message under way; 4 at the ends
//
// states: own falls as 1 / ranks, the share 1/m of it are C-points; fixed is left. Exact for any options and split, as the
// solver is replayed (cycle_replay.h). At most a call's own temporaries come on top of it while it is made. The first
// pass may have less right-hand sides than those behind it, which are meant here. Parameters, their gradients and a few
// bytes of norms are not in it; nor are the states of solves that wait for another batch's shape.
//
// Of blocks (models/block_model.h) that are called one by one, with the solver's own storage of all points. Local.
#ifndef PLAIT_MGRIT_SCALING_MEMORY_MODEL_H_
#define PLAIT_MGRIT_SCALING_MEMORY_MODEL_H_

#include <cstdint>

#include "mgrit/scaling/work_trace.h"

namespace plait::mgrit::scaling {

// Numbers of states, but for the calls.
struct RankMemory {
  std::int64_t points = 0;            // of own steps on all levels, in both solves
  std::int64_t right_hand_sides = 0;  // of coarse levels
  std::int64_t results = 0;           // of recorded calls, where they are no points
  std::int64_t calls = 0;             // recorded, whose activations are kept
  std::int64_t ghosts = 0;
  std::int64_t work = 0;  // scratch, residuals, messages under way
  std::int64_t ends = 0;  // u_0, u_N and their gradients, which the caller has as well

  std::int64_t own() const { return points + right_hand_sides + results; }
  std::int64_t fixed() const { return ghosts + work + ends; }
  // `call_bytes`: what a recorded call of a block keeps besides its input and its result.
  double Bytes(double state_bytes, double call_bytes) const {
    return static_cast<double>(own() + fixed()) * state_bytes + static_cast<double>(calls) * call_bytes;
  }
};

// The solver fits the steps (LayerParallel::Check).
RankMemory MemoryOf(const BatchShape& shape, int rank);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_MEMORY_MODEL_H_
