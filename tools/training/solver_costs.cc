#include "tools/training/solver_costs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "comm/buffer.h"
#include "comm/host_processors.h"
#include "mgrit/scaling/message_costs.h"

namespace plait::training {
namespace {

constexpr int kPingPongs = 5;

// Per evaluation, mean over all ranks.
mgrit::WorkSeconds SecondsPerPiece(const mgrit::WorkTimes& times, const comm::Communicator& world) {
  mgrit::WorkSeconds seconds = times.seconds;
  std::vector<double> counts(times.counts.values.begin(), times.counts.values.end());
  world.AllReduce(comm::BufferOf(absl::MakeSpan(seconds.values.data(), mgrit::kWorkKinds)));
  world.AllReduce(comm::BufferOf(absl::MakeSpan(counts)));
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    if (counts[kind] > 0) seconds.values[kind] /= counts[kind];
  }
  return mgrit::scaling::MeasuredOrLike(seconds);
}

// The largest of all ranks: one that sent nothing does not know.
double StateBytes(const mgrit::LayerParallel& solver, const comm::Communicator& world) {
  const mgrit::WorkCount& work = solver.last_forward().work;
  double bytes =
      work.messages == 0 ? 0 : static_cast<double>(work.message_bytes) / static_cast<double>(work.messages);
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&bytes, 1)), comm::ReduceOp::kMax);
  return bytes;
}

double GradientBytes(const mgrit::LayerParallel& solver) {
  double bytes = 0;
  const std::vector<at::Tensor> parameters = solver.Parameters();
  for (std::int64_t i = 0; i < solver.shared_parameters(); ++i) {
    bytes += static_cast<double>(parameters[static_cast<std::size_t>(i)].nbytes());
  }
  return bytes;
}

// Of `ranks` ranks along lp, on the host where they have fewest: ranks of other hosts must predict the same.
int CoresOf(int ranks, int ranks_on_host, const comm::Communicator& world) {
  const int here = comm::ProcessorsOfHost(world);
  std::int64_t cores = ranks_on_host <= here ? ranks : std::max(1, ranks * here / ranks_on_host);
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&cores, 1)), comm::ReduceOp::kMin);
  return static_cast<int>(cores);
}

}  // namespace

SolverCosts::SolverCosts(ShardedModel& model, const comm::Communicator& world, const mgrit::WorkTimes& work,
                         int ranks_on_host) {
  mgrit::LayerParallel& solver = *model.solver();
  shape_.steps = solver.steps();
  shape_.linearises_ahead = solver.linearises_ahead();
  shape_.shares_parameters = solver.shared_parameters() > 0;
  shape_.wants_input_gradient = true;
  evaluations_ = model.trained().coarse_hold.evaluations;
  costs_.work = SecondsPerPiece(work, world);
  costs_.state_bytes = StateBytes(solver, world);
  costs_.gradient_bytes = GradientBytes(solver);
  if (!model.mesh().Has("lp")) return;
  const comm::Communicator& ranks = model.mesh().axis("lp");
  shape_.ranks = ranks.size();
  machine_.cores = CoresOf(shape_.ranks, ranks_on_host, world);
  if (shape_.ranks == 1) return;
  const auto bytes = std::max<std::int64_t>(8, static_cast<std::int64_t>(costs_.state_bytes));
  // These messages are not the step's: they count under a name of their own (axis_traffic.h).
  const comm::Communicator probe = ranks.Split(/*color=*/0, ranks.rank(), "solver_costs");
  double one_way[2] = {mgrit::scaling::OneWaySeconds(probe, 8, kPingPongs),
                       mgrit::scaling::OneWaySeconds(probe, bytes, kPingPongs)};
  world.AllReduce(comm::BufferOf(absl::MakeSpan(one_way)), comm::ReduceOp::kMax);
  costs_.latency = one_way[0];
  costs_.byte = std::max(0.0, one_way[1] - one_way[0]) / static_cast<double>(bytes);
}

mgrit::scaling::BatchShape SolverCosts::ShapeOf(const SolverCandidate& candidate) const {
  mgrit::scaling::BatchShape shape = shape_;
  shape.solver = candidate.options;
  if (evaluations_) {
    shape.evaluations = [this, hold = candidate.hold](const mgrit::StepInterval& interval) {
      return evaluations_(interval, hold);
    };
  }
  return shape;
}

double SolverCosts::Predict(const SolverCandidate& candidate) const {
  return PredictBatch(ShapeOf(candidate), costs_, machine_);
}

double SolverCosts::PredictSerial() const {
  mgrit::scaling::BatchShape shape = ShapeOf({.options = mgrit::MakeLayerParallelOptions(1, 2, 1, 1)});
  shape.propagation = mgrit::Propagation::kSerial;
  return PredictBatch(shape, costs_, machine_);
}

}  // namespace plait::training
