#include "tools/training/auto_solver.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "tools/training/gradient_distance.h"
#include "tools/training/solver_costs.h"

namespace plait::training {
namespace {

// Counted steps of a trial (step_work.h), and seconds after which they suffice.
constexpr std::size_t kFewestSteps = 5, kMostSteps = 20;
constexpr double kEnoughSeconds = 1;
// Steps times ranks: every prediction simulates them all, and advice must not cost seconds.
constexpr std::int64_t kMostStepsForAdvice = 1 << 14;

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Seconds of a step's passes outside the solver, the same for all candidates. `measured`: of all with `own`.
double Outside(const SolverCosts& costs, const SolverCandidate& own, const StepSeconds& measured) {
  return std::max(0.0, measured.seconds - static_cast<double>(measured.micro_batches) * costs.Predict(own));
}

// The candidates that are valid for the network and its ranks, with predicted times.
std::vector<SolverCandidate> Predicted(ShardedModel& model, const SolverCosts& costs,
                                       const SolverCandidate& own, const StepSeconds& measured) {
  const double outside = Outside(costs, own, measured);
  std::vector<SolverCandidate> fitting;
  for (SolverCandidate& candidate : CandidatesLike(own.options, model.trained().coarse_hold.choices)) {
    if (!model.solver()->CheckOptions(candidate.options).ok()) continue;
    candidate.predicted_seconds =
        outside + static_cast<double>(measured.micro_batches) * costs.Predict(candidate);
    fitting.push_back(std::move(candidate));
  }
  return fitting;
}

}  // namespace

AutoSolver::AutoSolver(ShardedModel& model, const comm::Communicator& world,
                       const mgrit::LayerParallelOptions& own, double bias_limit, int ranks_on_host)
    : model_(model),
      world_(world),
      own_(own),
      ranks_on_host_(ranks_on_host),
      search_({.options = own}, bias_limit > 0 ? bias_limit : kBiasLimit) {}

void AutoSolver::Use(const SolverCandidate& candidate) {
  const absl::Status set = model_.solver()->SetOptions(candidate.options);
  PLAIT_CHECK(set.ok()) << set.message();
  if (model_.trained().coarse_hold.set) model_.trained().coarse_hold.set(candidate.hold);
}

parallel::PipelineStep AutoSolver::RunMicroBatches(const parallel::NextMicroBatch& next) {
  mgrit::LayerParallel& solver = *model_.solver();
  if (work_ == nullptr) {
    Use(*search_.next());
    work_ = std::make_unique<StepWork>(model_);
  }
  work_->Begin();
  GradientComparison comparison = CompareGradients(
      model_, world_, next, [&] { solver.set_propagation(mgrit::Propagation::kParallel); },
      [&] { solver.set_propagation(mgrit::Propagation::kSerial); });
  work_->End();
  solver.set_propagation(mgrit::Propagation::kParallel);  // for evaluations before the next step
  bias_ = comparison.distance;
  if (comparison.overflows || !work_->counts()) return std::move(comparison.exact);
  biases_.push_back(bias_);
  micro_batches_ = comparison.exact.losses.size();
  seconds_.push_back(comparison.seconds);
  serial_seconds_.push_back(comparison.exact_seconds);
  ratios_.push_back(comparison.seconds / comparison.exact_seconds);
  const double total = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  const bool enough = total >= kEnoughSeconds && seconds_.size() >= kFewestSteps;
  if (enough || seconds_.size() == kMostSteps) EndTrial();
  return std::move(comparison.exact);
}

void AutoSolver::EndTrial() {
  // One diverged solve disqualifies the candidate: NaN stays.
  double bias = 0;
  for (const double one : biases_) bias = std::isnan(bias) || one <= bias ? bias : one;
  search_.Take({.bias = bias,
                .seconds = MedianOf(seconds_),
                .serial_seconds = MedianOf(serial_seconds_),
                .ratio = MedianOf(ratios_)});
  if (!predicted_) PredictOthers();
  predicted_ = true;
  seconds_.clear();
  serial_seconds_.clear();
  ratios_.clear();
  biases_.clear();
  work_.reset();
  if (search_.next() != nullptr) return;
  if (search_.choice() != nullptr) choice_ = *search_.choice();
  UseChoice();
}

void AutoSolver::UseChoice() {
  if (choice_.has_value()) Use(*choice_);
  model_.solver()->set_propagation(choice_.has_value() ? mgrit::Propagation::kParallel
                                                       : mgrit::Propagation::kSerial);
}

std::string AutoSolver::Line() const {
  if (!restored_) return "--lp-auto chose " + search_.Reason();
  return absl::StrCat("--lp-auto continues with ",
                      choice_.has_value() ? TextOf(*choice_) : "serial propagation", ", chosen before");
}

void AutoSolver::Save(std::map<std::string, std::int64_t>& integers) const {
  if (!done()) return;
  integers["solver.auto.ranks"] = ranks();
  integers["solver.auto.serial"] = choice_.has_value() ? 0 : 1;
  if (!choice_.has_value()) return;
  const mgrit::Options& forward = choice_->options.forward;
  integers["solver.auto.levels"] = forward.max_levels;
  integers["solver.auto.forward_iterations"] = forward.max_iterations;
  integers["solver.auto.backward_iterations"] = choice_->options.backward.max_iterations;
  integers["solver.auto.hold"] = choice_->hold;
  for (std::size_t level = 0; level < forward.cfactors.size(); ++level) {
    integers[absl::StrCat("solver.auto.cfactor.", level)] = forward.cfactors[level];
  }
}

absl::Status AutoSolver::Restore(const parallel::Checkpoint& checkpoint) {
  const std::map<std::string, std::int64_t>& integers = checkpoint.integers();
  const auto found = [&](const std::string& name) { return integers.find("solver.auto." + name); };
  if (found("ranks") == integers.end() || found("ranks")->second != ranks()) return absl::OkStatus();
  const auto number = [&](const std::string& name, int least) -> absl::StatusOr<int> {
    const auto it = found(name);
    if (it != integers.end() && it->second >= least && it->second <= std::numeric_limits<int>::max()) {
      return static_cast<int>(it->second);
    }
    return absl::DataLossError(absl::StrCat(checkpoint.folder(), ": solver.auto.", name, " is ",
                                            it == integers.end() ? "missing" : absl::StrCat(it->second),
                                            "; expected at least ", least));
  };
  PLAIT_ASSIGN_OR_RETURN(const int serial, number("serial", 0));
  if (serial == 0) {
    SolverCandidate choice = {.options = own_};
    PLAIT_ASSIGN_OR_RETURN(choice.options.forward.max_levels, number("levels", 1));
    PLAIT_ASSIGN_OR_RETURN(choice.options.forward.max_iterations, number("forward_iterations", 1));
    PLAIT_ASSIGN_OR_RETURN(choice.options.backward.max_iterations, number("backward_iterations", 1));
    PLAIT_ASSIGN_OR_RETURN(choice.hold, number("hold", -1));
    choice.options.forward.cfactors.clear();
    for (int level = 0; found(absl::StrCat("cfactor.", level)) != integers.end(); ++level) {
      PLAIT_ASSIGN_OR_RETURN(const int factor, number(absl::StrCat("cfactor.", level), 2));
      choice.options.forward.cfactors.push_back(factor);
    }
    choice.options.backward.max_levels = choice.options.forward.max_levels;
    choice.options.backward.cfactors = choice.options.forward.cfactors;
    PLAIT_RETURN_IF_ERROR(number("cfactor.0", 2).status());
    // With other flags of the solver ranks may have other steps: the trials are repeated.
    if (!model_.solver()->CheckOptions(choice.options).ok()) return absl::OkStatus();
    choice_ = std::move(choice);
  }
  restored_ = true;
  UseChoice();
  return absl::OkStatus();
}

void AutoSolver::PredictOthers() {
  const SolverCosts costs(model_, world_, work_->work(), ranks_on_host_);
  search_.Predict(Predicted(model_, costs, {.options = own_}, {MedianOf(seconds_), micro_batches_}));
}

std::string AdviceOnSolver(ShardedModel& model, const comm::Communicator& world,
                           const mgrit::LayerParallelOptions& own, const mgrit::WorkTimes& work,
                           const StepSeconds& measured, int ranks_on_host) {
  const SolverCosts costs(model, world, work, ranks_on_host);
  const SolverCandidate now = {.options = own};
  const double seconds = measured.seconds;
  const double serial =
      Outside(costs, now, measured) + static_cast<double>(measured.micro_batches) * costs.PredictSerial();
  const bool predicts_others = model.solver()->steps() * costs.ranks() <= kMostStepsForAdvice;
  std::vector<SolverCandidate> others;
  if (predicts_others) others = Predicted(model, costs, now, measured);
  const auto fastest = std::min_element(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return a.predicted_seconds < b.predicted_seconds;
  });
  std::string line =
      absl::StrFormat("solver: %s takes %.3g s a step, serial propagation would take about %.3g s",
                      TextOf(now), seconds, serial);
  if (fastest != others.end() && fastest->predicted_seconds < std::min(seconds, serial)) {
    absl::StrAppendFormat(&line, ", %s about %.3g s; --lp-auto would try it", TextOf(*fastest),
                          fastest->predicted_seconds);
  } else if (predicts_others && serial < seconds) {
    absl::StrAppend(&line, "; --lp-auto would choose serial propagation");
  } else if (predicts_others && seconds < (1 - SolverSearch::kLeastGain) * serial) {
    absl::StrAppend(&line, "; --lp-auto would try no other");
  }
  return line;
}

}  // namespace plait::training
