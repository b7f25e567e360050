// Delta correction: U_k = Phi_c(U_{k-1}) + g_k + D_k (U_{k-1} - V_{k-1}), D_k = (d Phi^m - d Phi_c)(V_{k-1}) W W^T
// with orthonormal directions W at C-point k - 1. The operator of a level includes the D of that level, also in the
// tangents for the next coarser level.
#include <cmath>
#include <utility>

#include "mgrit/hierarchy.h"
#include "mgrit/level.h"

namespace plait::mgrit {

// Called after relaxation and forming of the equations. Frames propagate through intervals as states do in a sweep.
void Hierarchy::FormDeltas(Level& fine, Level& coarse) {
  const GridLevel& grid = fine.grid;
  if (grid.empty()) return;
  coarse.deltas.resize(coarse.u.size());
  coarse.directions.resize(coarse.u.size());
  const bool ends_on_c_point = grid.is_c_point(grid.last);
  if (grid.right_rank >= 0 && ends_on_c_point) {
    SendStates(fine, DirectionsAt(coarse, grid.last / grid.cfactor), grid.right_rank);
  }
  States of_ghost;
  if (grid.left_rank >= 0 && grid.is_c_point(grid.first)) of_ghost = ReceiveStates(fine, grid.left_rank);
  for (std::int64_t q = grid.last_interval() - 1; q >= grid.first_interval(); --q) {
    const std::int64_t c_point = q * grid.cfactor;
    const std::int64_t end = c_point + grid.cfactor;
    if (end > grid.steps) continue;
    Frame frame;
    if (c_point < grid.first) {
      frame.directions = ReceiveStates(fine, grid.left_rank);
      frame.images = ReceiveStates(fine, grid.left_rank);
    } else {
      const bool from_left = c_point == grid.first && !of_ghost.empty();
      frame.directions = from_left ? std::exchange(of_ghost, {}) : DirectionsAt(coarse, q);
      frame.images = NewDirections(fine.grid.level);
      for (std::size_t j = 0; j < frame.images.size(); ++j)
        problem_.Copy(*frame.directions[j], *frame.images[j]);
    }
    PropagateFrame(fine, std::max(c_point, grid.first), std::min(end, grid.last), frame);
    if (end <= grid.last) {
      TakeDelta(fine, coarse, q + 1, std::move(frame));
    } else {
      SendStates(fine, frame.directions, grid.right_rank);
      SendStates(fine, frame.images, grid.right_rank);
    }
  }
}

void Hierarchy::PropagateFrame(Level& level, std::int64_t from, std::int64_t to, Frame& frame) {
  std::unique_ptr<State> image = problem_.NewState(level.grid.level);
  for (std::int64_t point = from + 1; point <= to; ++point) {
    for (auto& before : frame.images) {
      problem_.StepTangent(IntervalOf(level, point - 1), level.point(point - 1), *before, *image);
      if (!level.homogeneous && !level.deltas.empty()) {
        const Level::Delta& delta = level.deltas[level.grid.local(point)];
        for (std::size_t j = 0; j < delta.directions.size(); ++j) {
          problem_.Combine(problem_.Dot(*delta.directions[j], *before), *delta.differences[j], 1.0, *image);
        }
      }
      std::swap(before, image);
    }
  }
}

void Hierarchy::TakeDelta(Level& fine, Level& coarse, std::int64_t coarse_point, Frame frame) {
  const std::int64_t before = coarse_point - 1;
  const int level = coarse.grid.level;
  Level::Delta& delta = coarse.deltas[coarse.grid.local(coarse_point)];
  if (delta.origin == nullptr) delta.origin = problem_.NewState(level);
  const bool is_ghost = before == coarse.grid.first;
  problem_.Copy(is_ghost ? coarse.point(before) : fine.point(before * fine.grid.cfactor), *delta.origin);
  delta.directions = std::move(frame.directions);
  delta.differences = NewDirections(level);
  State& tangent = *coarse.scratch[1];
  for (std::size_t j = 0; j < delta.directions.size(); ++j) {
    problem_.StepTangent(IntervalOf(coarse, before), *delta.origin, *delta.directions[j], tangent);
    problem_.Copy(*frame.images[j], *delta.differences[j]);
    problem_.Combine(-1.0, tangent, 1.0, *delta.differences[j]);
  }
  // If the directions have become linearly dependent, keeps the previous ones.
  if (Orthonormalize(frame.images))
    coarse.directions[coarse.grid.local(coarse_point)] = std::move(frame.images);
}

void Hierarchy::AddDelta(Level& level, std::int64_t point, const State& u, State& out) {
  const Level::Delta& delta = level.deltas[level.grid.local(point)];
  if (level.change == nullptr) level.change = problem_.NewState(level.grid.level);
  State& change = *level.change;
  problem_.Copy(u, change);
  problem_.Combine(-1.0, *delta.origin, 1.0, change);
  for (std::size_t j = 0; j < delta.directions.size(); ++j) {
    problem_.Combine(problem_.Dot(*delta.directions[j], change), *delta.differences[j], 1.0, out);
  }
}

// Returns a copy. At point 0, and at every point in the first iteration, the initial directions of the problem.
Hierarchy::States Hierarchy::DirectionsAt(const Level& coarse, std::int64_t point) {
  States copies = NewDirections(coarse.grid.level);
  const bool has_own = point > 0 && !coarse.directions[coarse.grid.local(point)].empty();
  for (std::size_t j = 0; j < copies.size(); ++j) {
    if (has_own) {
      problem_.Copy(*coarse.directions[coarse.grid.local(point)][j], *copies[j]);
    } else {
      problem_.InitializeDirection(static_cast<int>(j), *copies[j]);
    }
  }
  if (!has_own) Orthonormalize(copies);
  return copies;
}

Hierarchy::States Hierarchy::NewDirections(int level) {
  States states;
  for (int j = 0; j < options_.delta_rank; ++j) states.push_back(problem_.NewState(level));
  return states;
}

// Modified Gram-Schmidt; returns false if a vector is linearly dependent on the previous ones.
bool Hierarchy::Orthonormalize(const States& vectors) {
  for (std::size_t j = 0; j < vectors.size(); ++j) {
    const double before = std::sqrt(problem_.Dot(*vectors[j], *vectors[j]));
    for (std::size_t i = 0; i < j; ++i) {
      problem_.Combine(-problem_.Dot(*vectors[i], *vectors[j]), *vectors[i], 1.0, *vectors[j]);
    }
    const double norm = std::sqrt(problem_.Dot(*vectors[j], *vectors[j]));
    if (!(norm > 1e-12 * before)) return false;
    problem_.Combine(0.0, *vectors[j], 1.0 / norm, *vectors[j]);
  }
  return true;
}

void Hierarchy::SendStates(Level& level, const States& states, int rank) {
  for (const auto& state : states) SendState(level, *state, rank);
}

Hierarchy::States Hierarchy::ReceiveStates(Level& level, int rank) {
  States states = NewDirections(level.grid.level);
  for (auto& state : states) ReceiveState(level, *state, rank);
  return states;
}

}  // namespace plait::mgrit
