#include "tools/training/solver_control.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "comm/buffer.h"
#include "tools/device/device.h"
#include "tools/training/gradient_distance.h"

namespace plait::training {
namespace {

// Counted steps with the flags' own solver before the advice is printed.
constexpr std::size_t kStepsBeforeAdvice = 5;
constexpr char kDivergedSolves[] = "solver.diverged_solves";
constexpr char kEvaluations[] = "evaluations", kFineEvaluations[] = "fine_evaluations",
               kGradientBias[] = "gradient_bias";
constexpr char kBegin[] = "solver.begin";

// Checkpoints of earlier versions do not have what was refused.
absl::StatusOr<BiasPolicyState> PolicyStateIn(const parallel::Checkpoint& checkpoint) {
  const auto number = [&](const std::string& name, int least, int otherwise) -> absl::StatusOr<int> {
    const auto found = checkpoint.integers().find("solver." + name);
    const std::int64_t value = found == checkpoint.integers().end() ? otherwise : found->second;
    if (value >= least && value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
    return absl::DataLossError(absl::StrFormat("%s: solver.%s is %d; expected at least %d",
                                               checkpoint.folder(), name, value, least));
  };
  BiasPolicyState state;
  PLAIT_ASSIGN_OR_RETURN(state.choice.forward, number("forward_iterations", 1, -1));
  PLAIT_ASSIGN_OR_RETURN(state.choice.backward, number("backward_iterations", 1, -1));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t serial, checkpoint.Integer("solver.serial"));
  state.choice.serial = serial != 0;
  PLAIT_ASSIGN_OR_RETURN(state.refused_sum, number("refused_sum", 0, 0));
  PLAIT_ASSIGN_OR_RETURN(state.refused_for, number("refused_for", 0, 0));
  return state;
}

// What a policy begins with, of the flags.
std::string BeginOf(const LayerParallelSettings& settings) {
  return absl::StrFormat("iterations %d, forward %d, levels %d, factors %s", settings.iterations,
                         settings.forward_iterations, settings.levels, absl::StrJoin(settings.cfactor, ","));
}

}  // namespace

void SolverControl::Begin(ShardedModel& model) {
  model_ = &model;
  if (model.solver() == nullptr) return;
  const mgrit::LayerParallelOptions options = settings_.Options();
  if (settings_.chooses) auto_.emplace(model, world_, options, settings_.bias_limit, ranks_on_host_);
  if (settings_.bias_limit > 0) ControlBias(options);
  if (!policy_.has_value()) return;
  if (restored_.has_value()) policy_->Restore(*restored_);
  Use(policy_->choice());
}

void SolverControl::ControlBias(const mgrit::LayerParallelOptions& options) {
  const std::int64_t intervals = model_->solver()->steps() / mgrit::AtLevel(options.forward.cfactors, 0);
  policy_.emplace(
      BiasPolicyOptions{.limit = settings_.bias_limit,
                        .most_iterations = static_cast<int>(intervals) + 1,
                        .may_be_serial = settings_.may_be_serial},
      SolverChoice{.forward = options.forward.max_iterations, .backward = options.backward.max_iterations});
}

void SolverControl::Use(const SolverChoice& choice) {
  mgrit::LayerParallel& solver = *model_->solver();
  solver.set_iterations(choice.forward, choice.backward);
  solver.set_propagation(choice.serial ? mgrit::Propagation::kSerial : mgrit::Propagation::kParallel);
}

parallel::PipelineStep SolverControl::RunMicroBatches(std::int64_t step,
                                                      const parallel::NextMicroBatch& next) {
  line_.clear();
  has_step_ = true;
  const mgrit::LayerParallel* const solver = model_->solver();
  if (solver == nullptr) return model_->RunMicroBatches(next);
  const mgrit::WorkTimes before = solver->work_times();
  parallel::PipelineStep done = RunStep(step, next);
  const mgrit::WorkTimes work = solver->work_times().Since(before);
  evaluations_ += static_cast<double>(work.evaluations());
  fine_evaluations_ += static_cast<double>(work.fine_evaluations());
  CountDiverged(*solver);
  if (bias_.has_value()) recorded_bias_ = bias_;
  const mgrit::Solution &forward = solver->last_forward(), &backward = solver->last_backward();
  forward_ = {forward.iterations, forward.last_residual_norm()};
  backward_ = {backward.iterations, backward.last_residual_norm()};
  return done;
}

parallel::PipelineStep SolverControl::RunStep(std::int64_t step, const parallel::NextMicroBatch& next) {
  bias_.reset();
  if (auto_.has_value() && !auto_->done()) return Try(next);
  if (policy_.has_value() && step % settings_.bias_every == 0) return Measure(next);
  if (policy_.has_value()) Use(policy_->choice());
  return policy_.has_value() || auto_.has_value() ? model_->RunMicroBatches(next) : RunAndAdvise(next);
}

parallel::PipelineStep SolverControl::Try(const parallel::NextMicroBatch& next) {
  parallel::PipelineStep done = auto_->RunMicroBatches(next);
  bias_ = auto_->bias();
  if (auto_->done()) FollowChoice();
  return done;
}

void SolverControl::FollowChoice() {
  line_ = auto_->Line();
  const SolverCandidate* const choice = auto_->choice();
  if (choice == nullptr) {
    policy_.reset();  // no bias to control
  } else if (policy_.has_value()) {
    ControlBias(choice->options);
  }
}

parallel::PipelineStep SolverControl::RunAndAdvise(const parallel::NextMicroBatch& next) {
  if (seconds_.size() == kStepsBeforeAdvice) return model_->RunMicroBatches(next);
  if (!work_.has_value()) work_.emplace(*model_);
  work_->Begin();
  const double begin = device::SecondsWhenDone(model_->device());
  parallel::PipelineStep done = model_->RunMicroBatches(next);
  const double seconds = device::SecondsWhenDone(model_->device()) - begin;
  work_->End();
  if (work_->counts()) seconds_.push_back(seconds);
  if (seconds_.size() < kStepsBeforeAdvice) return done;
  world_.AllReduce(comm::BufferOf(absl::MakeSpan(seconds_)), comm::ReduceOp::kMax);
  const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
  std::nth_element(seconds_.begin(), middle, seconds_.end());
  line_ = AdviceOnSolver(*model_, world_, settings_.Options(), work_->work(), {*middle, done.losses.size()},
                         ranks_on_host_);
  return done;
}

parallel::PipelineStep SolverControl::Measure(const parallel::NextMicroBatch& next) {
  const bool by_iteration = settings_.bias_reference == "iteration";
  mgrit::LayerParallel& solver = *model_->solver();
  GradientComparison comparison = CompareGradients(
      *model_, world_, next,
      [&] {
        Use(policy_->iterations());
        if (by_iteration) solver.KeepPasses();
      },
      [&] {
        if (by_iteration) {
          solver.ContinueKeptPasses();
        } else {
          solver.set_propagation(mgrit::Propagation::kSerial);
        }
      });
  if (!comparison.overflows) {
    bias_ = comparison.distance;
    policy_->Take({.bias = *bias_, .seconds = comparison.seconds, .exact_seconds = comparison.exact_seconds});
  }
  const SolverChoice choice = policy_->choice();
  Use(choice);  // an evaluation may come before the next step
  if (comparison.overflows) return std::move(comparison.exact);
  line_ = absl::StrFormat(
      "%sgradient bias %.3g of the gradient, limit %.3g: next %d forward and %d backward iterations%s",
      by_iteration ? "estimated " : "", *bias_, settings_.bias_limit, choice.forward, choice.backward,
      choice.serial ? ", using serial propagation, which is faster" : "");
  return std::move(comparison.exact);
}

std::vector<Recorded> SolverControl::metrics() {
  constexpr auto kStatistics = rank_history::RankStatistics::kStatistics;
  return {{data::Count("forward_iterations", "iterations of the forward solve")},
          {{"forward_residual", "1", "residual of the state that entered the last forward iteration"}},
          {data::Count("backward_iterations", "iterations of the backward solve")},
          {{"backward_residual", "1", "residual of the state that entered the last backward iteration"}},
          {{kEvaluations, "1",
            "steps of the network evaluated by a rank since the previous draw, of all levels and both "
            "directions, to "
            "measure the bias too"},
           kStatistics},
          {{kFineEvaluations, "1", "of them, those on the finest level"}, kStatistics},
          {data::Count("diverged_solves", "solves so far that were done again serially")},
          {{kGradientBias, "1",
            "distance from the exact gradient, or from that of one iteration more, relative to it"}}};
}

void SolverControl::TakeStep(std::vector<data::Scalar>& scalars) {
  if (!has_step_ || model_->solver() == nullptr) return;
  has_step_ = false;
  scalars.push_back({"forward_iterations", static_cast<double>(forward_.iterations)});
  scalars.push_back({"forward_residual", forward_.residual});
  scalars.push_back({"backward_iterations", static_cast<double>(backward_.iterations)});
  scalars.push_back({"backward_residual", backward_.residual});
  scalars.push_back({kEvaluations, evaluations_});
  scalars.push_back({kFineEvaluations, fine_evaluations_});
  scalars.push_back({"diverged_solves", static_cast<double>(diverged_before_ + diverged_)});
  scalars.push_back({kGradientBias, recorded_bias_.value_or(std::numeric_limits<double>::quiet_NaN())});
  recorded_bias_.reset();
  evaluations_ = fine_evaluations_ = 0;
}

void SolverControl::AddTo(SinceDraw& sums) const {
  if (!has_step_ || model_->solver() == nullptr) return;
  sums[kEvaluations] = evaluations_;
  sums[kFineEvaluations] = fine_evaluations_;
  if (recorded_bias_.has_value()) sums[kGradientBias] = *recorded_bias_;
}

void SolverControl::RestoreSums(const std::optional<SinceDraw>& sums) {
  if (model_->solver() == nullptr || (sums.has_value() && sums->empty())) return;
  evaluations_ = Since(sums, kEvaluations);
  fine_evaluations_ = Since(sums, kFineEvaluations);
  const double bias = Since(sums, kGradientBias);
  if (!std::isnan(bias)) recorded_bias_ = bias;
}

// Of all data-parallel ranks: each has solves of its own, whose number the ranks of a solve share.
void SolverControl::CountDiverged(const mgrit::LayerParallel& solver) {
  diverged_ = solver.diverged_solves();
  std::int64_t groups = 1;
  for (const char* axis : {"dp_replicate", "dp_shard"}) {
    if (model_->mesh().Has(axis)) groups *= model_->mesh().axis(axis).size();
  }
  if (groups == 1) return;
  world_.AllReduce(comm::BufferOf(absl::MakeSpan(&diverged_, 1)));
  diverged_ /= world_.size() / groups;
}

void SolverControl::Save(parallel::CheckpointState& state) const {
  state.integers[kDivergedSolves] = diverged_before_ + diverged_;
  if (auto_.has_value()) auto_->Save(state.integers);
  if (!policy_.has_value()) return;
  state.texts[kBegin] = BeginOf(settings_);
  const BiasPolicyState policy = policy_->state();
  state.integers["solver.forward_iterations"] = policy.choice.forward;
  state.integers["solver.backward_iterations"] = policy.choice.backward;
  state.integers["solver.serial"] = policy.choice.serial ? 1 : 0;
  state.integers["solver.refused_sum"] = policy.refused_sum;
  state.integers["solver.refused_for"] = policy.refused_for;
}

absl::Status SolverControl::Restore(const parallel::Checkpoint& checkpoint) {
  const auto diverged = checkpoint.integers().find(kDivergedSolves);
  if (diverged != checkpoint.integers().end()) diverged_before_ = diverged->second;
  if (auto_.has_value()) {
    PLAIT_RETURN_IF_ERROR(auto_->Restore(checkpoint));
    if (auto_->done()) FollowChoice();
  }
  if (checkpoint.integers().count("solver.serial") == 0) return absl::OkStatus();
  const auto begin = checkpoint.texts().find(kBegin);  // checkpoints of earlier versions do not have it
  if (begin != checkpoint.texts().end() && begin->second != BeginOf(settings_)) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(restored_, PolicyStateIn(checkpoint));
  if (policy_.has_value()) {
    policy_->Restore(*restored_);
    Use(policy_->choice());
  }
  return absl::OkStatus();
}

}  // namespace plait::training
