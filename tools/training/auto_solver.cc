#include "tools/training/auto_solver.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "tools/training/gradient_distance.h"
#include "tools/training/solver_costs.h"

namespace plait::training {
namespace {

// Steps of a trial behind its first, which is not counted: memory is allocated in it, caches are cold.
constexpr std::size_t kMostSteps = 20;
constexpr double kEnoughSeconds = 0.2;
// Steps times ranks: every prediction replays them all, and advice must not cost seconds.
constexpr std::int64_t kMostStepsForAdvice = 1 << 14;

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Those that fit the network and its ranks, with predictions. `measured`: seconds of a step's passes by `own`, whose part
// outside the network all ways have alike.
std::vector<SolverCandidate> Predicted(ShardedModel& model, const SolverCosts& costs,
                                       const SolverCandidate& own, double measured) {
  const double outside = std::max(0.0, measured - costs.Predict(own));
  std::vector<SolverCandidate> fitting;
  for (SolverCandidate& candidate : CandidatesLike(own.options, model.trained().coarse_hold.choices)) {
    if (!model.solver()->CheckOptions(candidate.options).ok()) continue;
    candidate.predicted_seconds = outside + costs.Predict(candidate);
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
  const bool counts = began_;
  if (!began_) Use(*search_.next());
  began_ = true;
  if (counts && seconds_.empty() && !predicted_) before_ = solver.work_times();
  GradientComparison comparison = CompareGradients(
      model_, world_, next, [&] { solver.set_propagation(mgrit::Propagation::kParallel); },
      [&] { solver.set_propagation(mgrit::Propagation::kSerial); });
  bias_ = comparison.distance;
  if (!counts) return std::move(comparison.exact);
  biases_.push_back(bias_);
  seconds_.push_back(comparison.seconds);
  serial_seconds_.push_back(comparison.exact_seconds);
  const double total = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  if (total >= kEnoughSeconds || seconds_.size() == kMostSteps) EndTrial();
  return std::move(comparison.exact);
}

void AutoSolver::EndTrial() {
  // A solve that diverged once is none to rely on: NaN stays.
  double bias = 0;
  for (const double one : biases_) bias = std::isnan(bias) || one <= bias ? bias : one;
  search_.Take({.bias = bias, .seconds = MedianOf(seconds_), .serial_seconds = MedianOf(serial_seconds_)});
  if (!predicted_) PredictOthers();
  predicted_ = true;
  seconds_.clear();
  serial_seconds_.clear();
  biases_.clear();
  began_ = false;
  if (search_.next() != nullptr) return;
  if (const SolverCandidate* choice = search_.choice(); choice != nullptr) Use(*choice);
  model_.solver()->set_propagation(search_.choice() == nullptr ? mgrit::Propagation::kSerial
                                                               : mgrit::Propagation::kParallel);
}

void AutoSolver::PredictOthers() {
  const SolverCosts costs(model_, world_, before_, ranks_on_host_);
  search_.Predict(Predicted(model_, costs, {.options = own_}, MedianOf(seconds_)));
}

std::string AdviceOnSolver(ShardedModel& model, const comm::Communicator& world,
                           const mgrit::LayerParallelOptions& own, const mgrit::WorkTimes& before,
                           double seconds, int ranks_on_host) {
  const SolverCosts costs(model, world, before, ranks_on_host);
  const SolverCandidate now = {.options = own};
  const double serial = std::max(0.0, seconds - costs.Predict(now)) + costs.PredictSerial();
  std::vector<SolverCandidate> others;
  if (model.solver()->steps() * costs.ranks() <= kMostStepsForAdvice)
    others = Predicted(model, costs, now, seconds);
  const auto fastest = std::min_element(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return a.predicted_seconds < b.predicted_seconds;
  });
  std::string line =
      absl::StrFormat("solver: %s takes %.3g s a step, serial propagation would take about %.3g s",
                      TextOf(now), seconds, serial);
  if (fastest != others.end() && fastest->predicted_seconds < std::min(seconds, serial)) {
    absl::StrAppendFormat(&line, ", %s about %.3g s; --lp-auto would try it", TextOf(*fastest),
                          fastest->predicted_seconds);
  } else {
    absl::StrAppendFormat(&line, "; --lp-auto would choose %s",
                          serial < seconds ? "serial propagation" : "the same");
  }
  return line;
}

}  // namespace plait::training
