#include "tests/benchmarks/step_run.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace plait::benchmarks {
namespace {

constexpr std::int64_t kClasses = 6;

gru::SequenceClassifier SeededClassifier(const StepShape& shape) {
  at::manual_seed(1);
  return gru::SequenceClassifier({{shape.cell, shape.final_time}, kClasses}, at::kFloat);
}

}  // namespace

StepRun::StepRun(const StepShape& shape, const Setting& setting, const comm::Communicator& communicator)
    : TimedNetwork(communicator),
      shape_(shape),
      classifier_(SeededClassifier(shape)),
      parallel_([parameters = classifier_.gru().parameters()] { return parameters; }, shape.cell, at::kFloat,
                communicator, shape.steps, shape.final_time, setting.solver, setting.step),
      x_(at::randn({shape.batch, shape.steps, shape.cell.input})),
      labels_(at::randint(kClasses, {shape.batch}, at::kLong)) {}

double StepRun::RunInference(std::int64_t windows) {
  const at::NoGradGuard no_grad;
  communicator().Barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t done = 0; done < windows; done += shape_.batch) {
    const std::int64_t count = std::min(shape_.batch, windows - done);
    classifier_.Output({.hidden = parallel_.Forward(x_.narrow(0, 0, count))[-1]});
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string StepRun::Description() const {
  return absl::StrCat("problem=gru batch=", shape_.batch, " hidden=", shape_.cell.hidden);
}

double StepRun::StateBytes() const {
  return 4.0 * static_cast<double>(shape_.cell.layers * shape_.batch * shape_.cell.hidden);
}

void StepRun::ClearGradients() {
  for (at::Tensor& parameter : classifier_.parameters()) parameter.mutable_grad().reset();
}

at::Tensor StepRun::Loss(const at::Tensor& propagated) {
  return at::cross_entropy_loss(classifier_.Output({.hidden = propagated[-1]}), labels_);
}

at::Tensor StepRun::SerialLoss() { return at::cross_entropy_loss(classifier_.Forward(x_), labels_); }

}  // namespace plait::benchmarks
