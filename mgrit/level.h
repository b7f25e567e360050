// The states of one level on one rank. Private to Hierarchy.
#ifndef PLAIT_MGRIT_LEVEL_H_
#define PLAIT_MGRIT_LEVEL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/hierarchy.h"

namespace plait::mgrit {

struct Hierarchy::Level {
  GridLevel grid;
  bool stores_f_points = true;
  // The coarsest level, with Options::coarse_window. `first_of_windows`: its states already have the first step of
  // every window, which forming the equations has computed.
  bool in_windows = false;
  bool first_of_windows = false;
  // By own point, the ghost first. Null where a state is not stored (F-points with
  // Storage::kCPoints, but the last own one).
  std::vector<std::unique_ptr<State>> u;
  // Right-hand sides; empty on level 0. Null entries while the equations are homogeneous.
  std::vector<std::unique_ptr<State>> g;
  bool homogeneous = true;
  // The C-points of the finer level have not changed since they were corrected from this level, whose F-points are
  // relaxed: when they are restricted again, Phi(u_{k-1}) = u_k - g_k is known there. `g_before` keeps that g_k.
  bool unchanged_above = false;
  std::vector<std::unique_ptr<State>> g_before;
  // Restricted states, if space is coarsened; otherwise the C-points of the finer level still hold them.
  std::vector<std::unique_ptr<State>> v;
  // By own interval. `relaxed`: its F-points follow from its C-point. `first_known`: its first F-point does,
  // because forming the equations has computed that step already.
  std::vector<char> relaxed;
  std::vector<char> first_known;
  // Its F-points hold states of this solve, possibly not from the newest C-point.
  std::vector<char> has_f_states;
  // By own interval, filled by MarchTogether: the step to the C-point that ends it.
  std::vector<std::unique_ptr<State>> step_to_c_point;
  bool c_steps_known = false;

  // Delta correction, by own point of a coarse level as `u`. `deltas`: of the step to the point. `directions`: at the
  // point; empty before its first update.
  struct Delta {
    std::unique_ptr<State> origin;  // the state that the step is linearised at
    States directions;              // orthonormal
    States differences;             // of the tangents of fine and coarse steps along them
  };
  std::vector<Delta> deltas;
  std::vector<States> directions;
  std::unique_ptr<State> change;  // of a state since its origin

  std::unique_ptr<State> scratch[2];
  std::unique_ptr<State> residual;

  // The send in flight: a copy of the state if its memory can be sent directly, else its packed bytes.
  std::unique_ptr<State> sent;
  std::vector<std::byte> send_buffer;
  std::vector<std::byte> receive_buffer;
  comm::Work sending;

  State& point(std::int64_t index) { return *u[grid.local(index)]; }
  std::size_t interval(std::int64_t index) const {
    return static_cast<std::size_t>(index - grid.first_interval());
  }
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LEVEL_H_
