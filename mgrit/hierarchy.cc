#include "mgrit/hierarchy.h"

#include <algorithm>
#include <utility>

#include "mgrit/level.h"
#include "mgrit/stopwatch.h"

namespace plait::mgrit {

Hierarchy::Hierarchy(AnyProblem& problem, const Options& options, Grid grid, comm::Communicator communicator)
    : problem_(problem), options_(options), grid_(std::move(grid)), communicator_(std::move(communicator)) {
  for (int index = 0; index < grid_.levels(); ++index) {
    auto level = std::make_unique<Level>();
    level->grid = grid_.level(index);
    const GridLevel& shape = level->grid;
    const bool all_points = index > 0 || options_.storage == Storage::kAllPoints;
    if (!shape.empty()) {
      for (std::int64_t point = shape.first; point <= shape.last; ++point) {
        const bool stored = all_points || shape.is_c_point(point) || point == shape.first || point == shape.last;
        level->u.push_back(stored ? problem_.NewState(index) : nullptr);
      }
      level->relaxed.assign(shape.last_interval() - shape.first_interval(), 0);
      level->first_known = level->relaxed;
      for (auto& state : level->scratch) state = problem_.NewState(index);
      level->residual = problem_.NewState(index);
      if (index > 0) level->g.resize(level->u.size());
      if (index > 0 && problem_.CoarsensSpace()) level->v.resize(level->u.size());
    }
    levels_.push_back(std::move(level));
  }
  ClearWork();
}

Hierarchy::~Hierarchy() = default;

void Hierarchy::ClearWork() {
  work_ = WorkCount{};
  work_.steps.assign(grid_.levels(), 0);
}

void Hierarchy::Initialize(bool keep_states) {
  Level& fine = at(0);
  if (fine.grid.empty()) return;
  for (std::int64_t point = fine.grid.first; point <= fine.grid.last; ++point) {
    State* u = fine.u[fine.grid.local(point)].get();
    // F-points follow from C-points; a ghost F-point comes from its owner.
    if (u == nullptr || !fine.grid.is_c_point(point) || (keep_states && point > 0)) continue;
    problem_.Initialize(point, grid_.time().At(point), *u);
  }
  std::fill(fine.relaxed.begin(), fine.relaxed.end(), 0);
}

const State* Hierarchy::state(std::int64_t point) const {
  const Level& fine = *levels_[0];
  if (fine.grid.empty() || point < fine.grid.first || point > fine.grid.last) return nullptr;
  return fine.u[fine.grid.local(point)].get();
}

void Hierarchy::Send(Level& level) {
  State& state = level.point(level.grid.last);
  if (level.sending.valid()) level.sending.Wait();
  level.send_buffer.resize(problem_.PackedBytes(state));
  problem_.Pack(state, absl::MakeSpan(level.send_buffer));
  level.sending = communicator_.SendAsync(comm::BufferOf(absl::MakeSpan(level.send_buffer)), level.grid.right_rank,
                                          level.grid.level);
  work_.messages += 1;
  work_.message_bytes += static_cast<std::int64_t>(level.send_buffer.size());
}

void Hierarchy::Receive(Level& level) {
  State& ghost = level.point(level.grid.first);
  level.receive_buffer.resize(problem_.PackedBytes(ghost));
  const Stopwatch watch(work_.wait_seconds);
  communicator_.Receive(comm::BufferOf(absl::MakeSpan(level.receive_buffer)), level.grid.left_rank, level.grid.level);
  problem_.Unpack(level.receive_buffer, ghost);
}

void Hierarchy::FinishMessages() {
  for (auto& level : levels_) {
    if (level->sending.valid()) level->sending.Wait();
  }
}

}  // namespace plait::mgrit
