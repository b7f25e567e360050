#include "tools/gru_training/network.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "absl/strings/str_cat.h"
#include "tools/gru_training/solver_options.h"
#include "tools/gru_training/timed_step.h"

namespace plait::gru_training {
namespace {

gru::SequenceClassifierOptions ClassifierOptions(const Config& config, bool implicit, std::int64_t channels,
                                                 std::int64_t classes) {
  gru::SequenceClassifierOptions options;
  gru::GruConfig& cell = options.gru.cell;
  cell.input = channels;
  cell.hidden = config.hidden_size;
  cell.layers = config.num_layers;
  cell.kind = implicit ? gru::GruKind::kImplicit : gru::GruKind::kClassic;
  if (config.dtype == "bfloat16") cell.products = gru::GruProducts::kBFloat16;
  options.gru.final_time = config.tf;
  options.classes = classes;
  return options;
}

at::TensorOptions TensorOptions(const Config& config) {
  return at::TensorOptions(config.dtype == "float64" ? at::kDouble : at::kFloat);
}

// Drawn in float32 for every type: float64 then starts from the same numbers.
gru::SequenceClassifier SeededClassifier(const Config& config,
                                         const gru::SequenceClassifierOptions& options) {
  at::manual_seed(config.seed);
  gru::SequenceClassifier classifier(options, at::kFloat);
  if (config.dtype == "float64") classifier.module()->to(at::kDouble);
  return classifier;
}

SolveReport ReportOf(const mgrit::Solution& solution) {
  return {solution.iterations, solution.residual_norms};
}

}  // namespace

Network::Network(const Config& config, const comm::Communicator& communicator, std::int64_t channels,
                 std::int64_t classes, base::TimerSet& timers)
    : options_(TensorOptions(config)),
      timers_(timers),
      classifier_(SeededClassifier(
          config,
          ClassifierOptions(config, TrainsImplicit(config, communicator.size()), channels, classes))) {
  for (const auto& parameter : classifier_.module()->named_parameters()) {
    parameters_.emplace_back(parameter.key(), parameter.value());
  }
  const bool tests_implicit = TestsImplicit(config, communicator.size());
  test_gru_ = std::make_unique<gru::SerialGru>(
      ClassifierOptions(config, tests_implicit, channels, classes).gru, classifier_.gru().module());
  if (!IsLayerParallel(config, communicator.size())) return;
  const std::shared_ptr<torch::nn::Module> module = classifier_.gru().module();
  parallel_ = std::make_unique<gru::LayerParallelGru>(
      [module] { return module->parameters(); }, classifier_.gru().options().cell, options_, communicator,
      config.sequence_length, config.tf, SolverOptions(config), StepOptions(config),
      [&timers](std::shared_ptr<mgrit::TensorStep> step) {
        return std::make_shared<TimedStep>(step, timers);
      });
}

at::Tensor Network::Scores(const at::Tensor& x) {
  if (parallel_ == nullptr) return classifier_.Forward(x);
  const at::Tensor state = parallel_->Forward(x);
  CountSolve("ForWD", parallel_->solver().last_forward());
  return classifier_.Output({.hidden = state.select(0, state.size(0) - 1)});
}

at::Tensor Network::SerialScores(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return classifier_.Output({.hidden = test_gru_->Forward(x).output});
}

void Network::CountBackward() {
  if (parallel_ != nullptr) CountSolve("BckWD", parallel_->solver().last_backward());
}

void Network::CountSolve(const char* direction, const mgrit::Solution& solution) {
  timers_.Get(absl::StrCat(direction, "::func:run")).Add(solution.seconds);
  timers_.Get(absl::StrCat(direction, "::comm:wait")).Add(solution.work.wait_seconds);
}

SolveReport Network::last_forward() const {
  return parallel_ == nullptr ? SolveReport() : ReportOf(parallel_->solver().last_forward());
}

SolveReport Network::last_backward() const {
  return parallel_ == nullptr ? SolveReport() : ReportOf(parallel_->solver().last_backward());
}

}  // namespace plait::gru_training
