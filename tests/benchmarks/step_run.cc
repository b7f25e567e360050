#include "tests/benchmarks/step_run.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace plait::benchmarks {
namespace {

constexpr std::int64_t kClasses = 6;

class Clock {
 public:
  // Seconds since the last call, or since the clock was made.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

gru::SequenceClassifier SeededClassifier(const StepShape& shape) {
  at::manual_seed(1);
  return gru::SequenceClassifier({{shape.cell, shape.final_time}, kClasses}, at::kFloat);
}

}  // namespace

StepRun::StepRun(const StepShape& shape, const Setting& setting, const comm::Communicator& communicator)
    : shape_(shape),
      setting_(setting),
      communicator_(communicator),
      classifier_(SeededClassifier(shape)),
      parallel_([parameters = classifier_.gru().parameters()] { return parameters; }, shape.cell, at::kFloat,
                communicator, shape.steps, shape.final_time, setting.solver, setting.step),
      x_(at::randn({shape.batch, shape.steps, shape.cell.input})),
      labels_(at::randint(kClasses, {shape.batch}, at::kLong)) {}

BatchSeconds StepRun::RunBatch() {
  for (at::Tensor& parameter : classifier_.parameters()) parameter.mutable_grad().reset();
  const double work_before = solver().work_times().total_seconds();
  communicator_.Barrier();
  const double messages_before = MessageSeconds();
  BatchSeconds seconds;
  Clock clock;
  const at::Tensor state = parallel_.Forward(x_);
  seconds.forward = clock.Lap();
  const at::Tensor leaf = state.detach().requires_grad_();
  at::cross_entropy_loss(classifier_.Output({.hidden = leaf[-1]}), labels_).backward();
  seconds.head = clock.Lap();
  state.backward(leaf.grad());
  seconds.backward = clock.Lap();
  const mgrit::Solution& forward = parallel_.solver().last_forward();
  const mgrit::Solution& backward = parallel_.solver().last_backward();
  seconds.forward_solve = forward.seconds;
  seconds.backward_solve = backward.seconds;
  seconds.messages = MessageSeconds() - messages_before;
  seconds.work = solver().work_times().total_seconds() - work_before;
  return seconds;
}

double StepRun::RunInference(std::int64_t windows) {
  const at::NoGradGuard no_grad;
  communicator_.Barrier();
  Clock clock;
  for (std::int64_t done = 0; done < windows; done += shape_.batch) {
    const std::int64_t count = std::min(shape_.batch, windows - done);
    classifier_.Output({.hidden = parallel_.Forward(x_.narrow(0, 0, count))[-1]});
  }
  return clock.Lap();
}

double StepRun::RunSerialBatch() {
  for (at::Tensor& parameter : classifier_.parameters()) parameter.mutable_grad().reset();
  Clock clock;
  at::cross_entropy_loss(classifier_.Forward(x_), labels_).backward();
  return clock.Lap();
}

double StepRun::MessageSeconds() const {
  double seconds = 0;
  for (const auto& [axis, operations] : communicator_.stats()) {
    for (const comm::OperationStats& operation : operations) seconds += operation.exposed_seconds;
  }
  return seconds;
}

double StepRun::SumOverRanks(const mgrit::WorkCount& count) const {
  double sum = static_cast<double>(Evaluations(setting_, count.steps));
  communicator_.AllReduce(comm::BufferOf(absl::MakeSpan(&sum, 1)));
  return sum;
}

double StepRun::GradientCount() const {
  double count = 0;
  for (const at::Tensor& parameter : classifier_.parameters())
    count += static_cast<double>(parameter.numel());
  return count - static_cast<double>(kClasses * (shape_.cell.hidden + 1));  // without the head's
}

double StepRun::ForwardEvaluations() const { return SumOverRanks(parallel_.solver().last_forward().work); }
double StepRun::BackwardEvaluations() const { return SumOverRanks(parallel_.solver().last_backward().work); }

}  // namespace plait::benchmarks
