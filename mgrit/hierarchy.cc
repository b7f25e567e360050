#include "mgrit/hierarchy.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "mgrit/level.h"
#include "mgrit/stopwatch.h"

namespace plait::mgrit {

Hierarchy::Hierarchy(AnyProblem& problem, const Options& options, Grid grid, comm::Communicator communicator)
    : problem_(problem),
      options_(options),
      grid_(std::move(grid)),
      communicator_(std::move(communicator)),
      transport_(communicator_) {
  const StateMemory memory = problem_.Memory(*problem_.NewState(0));
  if (memory.cuda_device >= 0) transport_ = communicator_.OnCuda(memory.cuda_device);
  const bool on_device = transport_.device() == comm::Device::kCuda;
  sends_from_memory_ = memory.data != nullptr && on_device == (memory.cuda_device >= 0);
  if (!sends_from_memory_) transport_ = communicator_;
  PLAIT_CHECK(options_.delta_rank == 0 || !problem_.HasEquation())
      << "the delta correction is one of steps: no equation of the problem's own (HasEquation) with "
         "delta_rank "
      << options_.delta_rank;
  PLAIT_CHECK(options_.delta_rank == 0 || !problem_.CoarsensSpace())
      << "the delta correction needs states of one shape on all levels: no spatial coarsening with "
         "delta_rank "
      << options_.delta_rank;
  for (int index = 0; index < grid_.levels(); ++index) {
    auto level = std::make_unique<Level>();
    level->grid = grid_.level(index);
    const GridLevel& shape = level->grid;
    level->stores_f_points = index >= options_.c_point_levels || options_.storage == Storage::kAllPoints;
    level->in_windows = options_.coarse_window > 0 && index + 1 == grid_.levels();
    if (level->in_windows) level->stores_f_points = true;
    if (!shape.empty()) {
      for (std::int64_t point = shape.first; point <= shape.last; ++point) {
        const bool stored =
            level->stores_f_points || shape.is_c_point(point) || point == shape.first || point == shape.last;
        level->u.push_back(stored ? problem_.NewState(index) : nullptr);
      }
      level->relaxed.assign(shape.last_interval() - shape.first_interval(), 0);
      level->first_known = level->relaxed;
      level->has_f_states.assign(level->relaxed.size(), index > 0);  // restricted before any step
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

void Hierarchy::SetProgress(int iteration, double progress) {
  iteration_ = iteration;
  if (problem_.IsInexact() && progress != progress_) ForgetSteps();
  progress_ = progress;
}

void Hierarchy::ForgetSteps() {
  for (auto& level : levels_) {
    std::fill(level->relaxed.begin(), level->relaxed.end(), 0);
    level->unchanged_above = false;
  }
}

bool Hierarchy::Initialize(bool keep_states) {
  Level& fine = at(0);
  const bool keep = keep_states && has_states_;
  for (std::int64_t point = fine.grid.first; point <= fine.grid.last && !fine.grid.empty(); ++point) {
    State* u = fine.u[fine.grid.local(point)].get();
    // F-points are computed from C-points, and a ghost F-point is received from its owner.
    if (u == nullptr || !fine.grid.is_c_point(point) || (keep && (point > 0 || options_.periodic))) continue;
    const std::int64_t source = options_.periodic && point == fine.grid.steps ? 0 : point;
    if (guess_ && source > 0) {
      guess_(source, *u);
    } else {
      problem_.Initialize(source, grid_.time().At(source), *u);
    }
  }
  std::fill(fine.relaxed.begin(), fine.relaxed.end(), 0);
  std::fill(fine.has_f_states.begin(), fine.has_f_states.end(), 0);
  for (auto& level : levels_) {
    level->unchanged_above = false;
    level->deltas.clear();
    if (!keep) level->directions.clear();
  }
  has_states_ = true;
  ShareInitialState();
  return keep;
}

// A coarse step belongs to the owner of its last fine step, so the first coarse step and the first fine step may belong
// to different ranks.
void Hierarchy::ShareInitialState() {
  const Partition& partition = grid_.partition();
  const int me = communicator_.rank();
  const int source = partition.RankAt(partition.OwnerPosition(0));
  std::unique_ptr<State> finer;
  for (int index = 1; index < levels(); ++index) {
    Level& level = at(index);
    const int owner = partition.RankAt(partition.OwnerPosition(level.grid.stride - 1));
    if (me != source) {
      if (me == owner) ReceiveState(level, level.point(0), source);
      continue;
    }
    std::unique_ptr<State> u = problem_.NewState(index);
    const State& fine = index == 1 ? at(0).point(0) : *finer;
    problem_.CoarsensSpace() ? problem_.Restrict(index - 1, fine, *u) : problem_.Copy(fine, *u);
    if (me == owner) {
      problem_.Copy(*u, level.point(0));
    } else {
      SendState(level, *u, owner);
    }
    finer = std::move(u);
  }
}

const State* Hierarchy::state(std::int64_t point) const {
  const Level& fine = *levels_[0];
  if (fine.grid.empty() || point < fine.grid.first || point > fine.grid.last) return nullptr;
  return fine.u[fine.grid.local(point)].get();
}

void Hierarchy::Send(Level& level) {
  if (level.grid.right_rank == communicator_.rank()) return;  // a ring of one rank: Receive copies
  SendState(level, level.point(level.grid.last), level.grid.right_rank);
}

void Hierarchy::Receive(Level& level) {
  if (level.grid.left_rank == communicator_.rank()) {
    return problem_.Copy(level.point(level.grid.last), level.point(level.grid.first));
  }
  ReceiveState(level, level.point(level.grid.first), level.grid.left_rank);
}

void Hierarchy::SendState(Level& level, const State& state, int rank) {
  if (level.sending.valid()) level.sending.Wait();
  comm::Buffer message;
  if (sends_from_memory_) {
    if (level.sent == nullptr) level.sent = problem_.NewState(level.grid.level);
    problem_.Copy(state, *level.sent);
    message = MemoryOf(*level.sent);
  } else {
    level.send_buffer.resize(problem_.PackedBytes(state));
    problem_.Pack(state, absl::MakeSpan(level.send_buffer));
    message = comm::BufferOf(absl::MakeSpan(level.send_buffer));
  }
  level.sending = transport_.SendAsync(message, rank, level.grid.level);
  work_.messages += 1;
  work_.message_bytes += message.bytes();
}

void Hierarchy::ReceiveState(Level& level, State& state, int rank) {
  const Stopwatch watch(work_.wait_seconds);
  if (sends_from_memory_) return transport_.Receive(MemoryOf(state), rank, level.grid.level);
  level.receive_buffer.resize(problem_.PackedBytes(state));
  transport_.Receive(comm::BufferOf(absl::MakeSpan(level.receive_buffer)), rank, level.grid.level);
  problem_.Unpack(level.receive_buffer, state);
}

comm::Buffer Hierarchy::MemoryOf(State& state) const {
  const StateMemory memory = problem_.Memory(state);
  return {memory.data, memory.bytes, comm::DataType::kUInt8,
          memory.cuda_device >= 0 ? comm::Device::kCuda : comm::Device::kCpu};
}

void Hierarchy::FinishMessages() {
  for (auto& level : levels_) {
    if (level->sending.valid()) level->sending.Wait();
  }
}

}  // namespace plait::mgrit
