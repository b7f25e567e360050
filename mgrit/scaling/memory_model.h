// Memory of a rank for a recorded pass of LayerParallel and its backward, counted in states and recorded calls.
//
//   BatchShape shape = {.solver = MakeLayerParallelOptions(2, 4, 2, 1), .steps = 1024, .ranks = 64};
//   RankMemory memory = MemoryOf(shape, /*rank=*/5);
//   double bytes = memory.Bytes(state_bytes, call_bytes);
//
// A rank has n = steps / ranks steps of level 0, n / m of level 1, n / m^2 of level 2, and so on. With F-relaxation on
// level 0, FCF-relaxation on the others and more than one iteration in both directions, it holds
//
//   own     2 (n + n/m + n/m^2 + ...)   points of both solves
//         + 2 (2 n/m + n/m^2 + ...)     right-hand sides; on level 1 also those of the previous visit
//         + (n/m + n/m + n/m^2 + ...)   results of recorded calls that are no states: to C-points, on coarse levels
//   calls     n + n/m + n/m^2 + ...     recorded calls, whose activations are kept
//   fixed   2 (1 + 3 + 1) per level: ghost, two scratch states, residual, send buffer; and 3 or 4 ends
//
// `own` falls as 1 / ranks, `fixed` does not. The counts come from a replay of the solver (cycle_replay.h) and are
// exact for any partition, and the options that work_trace.h covers. Not included: temporaries of the call in
// progress, parameters and their gradients, norms, and the states of pooled solves for batches of other shapes. The
// first pass may have fewer right-hand sides than the later ones, which are counted here.
//
// For models::Block steps called one by one, with Storage::kAllPoints. Local.
#ifndef PLAIT_MGRIT_SCALING_MEMORY_MODEL_H_
#define PLAIT_MGRIT_SCALING_MEMORY_MODEL_H_

#include <cstdint>

#include "mgrit/scaling/work_trace.h"

namespace plait::mgrit::scaling {

// Numbers of states; of `calls`, numbers of recorded calls.
struct RankMemory {
  std::int64_t points = 0;            // of own steps on all levels, in both solves
  std::int64_t right_hand_sides = 0;  // of coarse levels
  std::int64_t results = 0;           // of recorded calls, unless they are points
  std::int64_t calls = 0;             // recorded, whose activations are kept
  std::int64_t ghosts = 0;
  std::int64_t work = 0;  // scratch, residuals, send buffers
  std::int64_t ends = 0;  // u_0, u_N, dJ/du_N and, if wanted, dJ/du_0; the caller holds them as well

  std::int64_t own() const { return points + right_hand_sides + results; }
  std::int64_t fixed() const { return ghosts + work + ends; }
  // `call_bytes`: bytes that a recorded call of a block keeps besides its input and its result.
  double Bytes(double state_bytes, double call_bytes) const {
    return static_cast<double>(own() + fixed()) * state_bytes + static_cast<double>(calls) * call_bytes;
  }
};

// `shape.solver` must fit the steps (LayerParallel::Check).
RankMemory MemoryOf(const BatchShape& shape, int rank);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_MEMORY_MODEL_H_
