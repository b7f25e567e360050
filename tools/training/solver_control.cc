#include "tools/training/solver_control.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "comm/buffer.h"

namespace plait::training {
namespace {

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<at::Tensor> CopyOfGradients(const parallel::DataParallel& engine) {
  std::vector<at::Tensor> copies;
  for (const parallel::Shard& shard : engine.shards()) {
    copies.push_back(shard.gradient.defined() ? shard.gradient.clone() : at::Tensor());
  }
  return copies;
}

// |gradient - other| / |gradient| over the mesh; the gradients stay as they are.
double Distance(parallel::DataParallel& engine, const std::vector<at::Tensor>& others) {
  const at::NoGradGuard no_grad;
  const double norm = engine.GradientNorm();
  const std::vector<at::Tensor> kept = CopyOfGradients(engine);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const at::Tensor& gradient = engine.shards()[i].gradient;
    if (gradient.defined() && others[i].defined()) gradient.sub_(others[i]);
  }
  const double difference = engine.GradientNorm();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].defined()) engine.shards()[i].gradient.copy_(kept[i]);
  }
  return difference / norm;
}

double Evaluations(const mgrit::Solution& solution) {
  const std::vector<std::int64_t>& steps = solution.work.steps;
  return static_cast<double>(std::accumulate(steps.begin(), steps.end(), std::int64_t{0}));
}

}  // namespace

void SolverControl::Begin(ShardedModel& model) {
  model_ = &model;
  if (settings_.bias_limit == 0 || model.solver() == nullptr) return;
  const mgrit::LayerParallelOptions options = settings_.Options();
  const std::int64_t intervals = model.solver()->steps() / mgrit::AtLevel(options.forward.cfactors, 0);
  policy_.emplace(
      BiasPolicyOptions{.limit = settings_.bias_limit,
                        .most_iterations = static_cast<int>(intervals) + 1,
                        .may_be_serial = settings_.may_be_serial},
      SolverChoice{.forward = options.forward.max_iterations, .backward = options.backward.max_iterations});
  if (restored_.has_value()) policy_->Restore(*restored_);
}

void SolverControl::Use(const SolverChoice& choice) {
  mgrit::LayerParallel& solver = *model_->solver();
  solver.set_iterations(choice.forward, choice.backward);
  solver.set_propagation(choice.serial ? mgrit::Propagation::kSerial : mgrit::Propagation::kParallel);
}

parallel::PipelineStep SolverControl::RunMicroBatches(std::int64_t step,
                                                      const parallel::NextMicroBatch& next) {
  bias_.reset();
  has_step_ = true;
  if (!policy_.has_value()) return model_->RunMicroBatches(next);
  if (step % settings_.bias_every == 0) return Measure(next);
  Use(policy_->choice());
  return model_->RunMicroBatches(next);
}

parallel::PipelineStep SolverControl::Measure(const parallel::NextMicroBatch& next) {
  std::vector<parallel::PipelineMicroBatch> micro_batches;
  const auto kept = [&](int k) {
    if (static_cast<std::size_t>(k) == micro_batches.size()) micro_batches.push_back(next(k));
    return micro_batches[static_cast<std::size_t>(k)];
  };
  double seconds[2] = {};
  Use(policy_->iterations());
  double begin = NowSeconds();
  model_->RunMicroBatches(kept, /*final=*/false);
  seconds[0] = NowSeconds() - begin;
  parallel::DataParallel& engine = model_->engine();
  engine.SumPartialGradients();
  const std::vector<at::Tensor> biased = CopyOfGradients(engine);
  engine.AllGatherParameters();  // forgets gradients; parameters are what they were

  const bool by_iteration = settings_.bias_reference == "iteration";
  const SolverChoice now = policy_->iterations();
  Use({.forward = now.forward + 1, .backward = now.backward + 1, .serial = !by_iteration});
  begin = NowSeconds();
  parallel::PipelineStep done = model_->RunMicroBatches(kept);
  seconds[1] = NowSeconds() - begin;
  bias_ = Distance(engine, biased);
  world_.AllReduce(comm::BufferOf(absl::MakeSpan(seconds)), comm::ReduceOp::kMax);
  policy_->Take({.bias = *bias_, .seconds = seconds[0], .exact_seconds = seconds[1]});
  return done;
}

std::string SolverControl::Line() const {
  if (!bias_.has_value()) return "";
  const SolverChoice choice = policy_->choice();
  return absl::StrFormat(
      "%sgradient bias %.3g of the gradient, limit %.3g: next %d forward and %d backward iterations%s",
      settings_.bias_reference == "iteration" ? "estimated " : "", *bias_, settings_.bias_limit,
      choice.forward, choice.backward, choice.serial ? ", but serially, which is faster" : "");
}

std::vector<Recorded> SolverControl::metrics() {
  constexpr auto kStatistics = rank_history::RankStatistics::kStatistics;
  return {
      {{"forward_iterations", "1", "iterations of the forward solve"}},
      {{"forward_residual", "1", "residual of the state that entered the last forward iteration"}},
      {{"backward_iterations", "1", "iterations of the backward solve"}},
      {{"backward_residual", "1", "residual of the state that entered the last backward iteration"}},
      {{"step_evaluations", "1", "steps of the network that a rank took, of all levels and both directions"},
       kStatistics},
      {{"diverged_solves", "1", "solves so far that were done again serially"}},
      {{"gradient_bias", "1",
        "distance from the exact gradient, or from that of one iteration more, relative to it"}}};
}

void SolverControl::TakeStep(std::vector<data::Scalar>& scalars) {
  if (!has_step_ || model_->solver() == nullptr) return;
  has_step_ = false;
  const mgrit::LayerParallel& solver = *model_->solver();
  const mgrit::Solution &forward = solver.last_forward(), &backward = solver.last_backward();
  scalars.push_back({"forward_iterations", static_cast<double>(forward.iterations)});
  scalars.push_back({"forward_residual", forward.last_residual_norm()});
  scalars.push_back({"backward_iterations", static_cast<double>(backward.iterations)});
  scalars.push_back({"backward_residual", backward.last_residual_norm()});
  scalars.push_back({"step_evaluations", Evaluations(forward) + Evaluations(backward)});
  scalars.push_back({"diverged_solves", static_cast<double>(solver.diverged_solves())});
  scalars.push_back({"gradient_bias", bias_.value_or(std::numeric_limits<double>::quiet_NaN())});
}

void SolverControl::Save(parallel::CheckpointState& state) const {
  if (!policy_.has_value()) return;
  const SolverChoice choice = policy_->choice();
  state.integers["solver.forward_iterations"] = choice.forward;
  state.integers["solver.backward_iterations"] = choice.backward;
  state.integers["solver.serial"] = choice.serial ? 1 : 0;
}

absl::Status SolverControl::Restore(const parallel::Checkpoint& checkpoint) {
  if (checkpoint.integers().count("solver.serial") == 0) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t forward, checkpoint.Integer("solver.forward_iterations"));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t backward, checkpoint.Integer("solver.backward_iterations"));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t serial, checkpoint.Integer("solver.serial"));
  if (forward < 1 || backward < 1 || forward > std::numeric_limits<int>::max() ||
      backward > std::numeric_limits<int>::max()) {
    return absl::DataLossError(absl::StrFormat(
        "%s: solver.forward_iterations=%d, solver.backward_iterations=%d; expected at least 1 each",
        checkpoint.folder(), forward, backward));
  }
  restored_ = {
      .forward = static_cast<int>(forward), .backward = static_cast<int>(backward), .serial = serial != 0};
  if (policy_.has_value()) policy_->Restore(*restored_);
  return absl::OkStatus();
}

}  // namespace plait::training
