#include "mgrit/layer_parallel/engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "comm/tensor_collectives.h"

namespace plait::mgrit {

at::Tensor NetworkProblem::Make(int) { return at::zeros_like(u_0_, at::MemoryFormat::Contiguous); }

void NetworkProblem::Initialize(std::int64_t, double, at::Tensor& u) {
  StateOperations<at::Tensor>::Copy(u_0_, u);
}

void NetworkProblem::Step(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  step_.Forward(interval, u, out);
}

void NetworkProblem::StepMany(absl::Span<const StepTask> tasks) {
  std::vector<TensorStep::Task> tensor_tasks;
  for (const StepTask& task : tasks) {
    tensor_tasks.push_back({task.interval, &Value<at::Tensor>(*task.u), &Value<at::Tensor>(*task.out)});
  }
  step_.ForwardMany(tensor_tasks);
}

void NetworkProblem::StepAdjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                                 at::Tensor& out) {
  step_.Adjoint(interval, u, lambda, out);
}

LayerParallel::Engine::Engine(comm::Communicator communicator, std::shared_ptr<TensorStep> step,
                              std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : communicator_(std::move(communicator)),
      step_(std::move(step)),
      time_{.start = 0, .stop = final_time, .steps = steps},
      options_(options),
      partition_(Partition::OfWholeIntervals(steps, communicator_.size(), options.forward)),
      position_(partition_.PositionOf(communicator_.rank())),
      problem_(*step_),
      adjoint_(problem_, time_, [this](std::int64_t point) -> const at::Tensor& { return StateAt(point); }) {
  const absl::Status fits = LayerParallel::Check(options, steps);
  PLAIT_CHECK(fits.ok()) << fits.message();
  step_->SetOwnSteps(first_step(), last_step());
  std::vector<std::int64_t> bounds;
  std::vector<int> owners;
  const std::int64_t interval = LeafBegin(1);
  for (int p = 0; p < partition_.positions(); ++p) {
    bounds.push_back((partition_.first_step(p) + interval - 1) / interval);
    owners.push_back(partition_.RankAt(p));
  }
  bounds.push_back((steps + interval - 1) / interval);
  gradient_sum_ = std::make_unique<TreeSum>(std::move(bounds), std::move(owners), communicator_);
}

std::int64_t LayerParallel::Engine::LeafBegin(std::int64_t leaf) const {
  const std::int64_t interval = options_.forward.max_levels > 1 ? AtLevel(options_.forward.cfactors, 0) : 1;
  return std::min(leaf * interval, time_.steps);
}

// The memory of a solve is kept as long as the states keep their shape.
void LayerParallel::Engine::PrepareSolvers(const at::Tensor& u_0, bool differentiable) {
  problem_.set_input(u_0);
  const bool same_states =
      forward_ != nullptr && u_0.sizes() == state_sizes_ && u_0.dtype() == state_options_.dtype();
  if (same_states && differentiable == differentiable_) return;
  state_sizes_ = u_0.sizes().vec();
  state_options_ = u_0.options();
  differentiable_ = differentiable;
  Options forward = options_.forward;
  forward.storage = Storage::kAllPoints;
  forward.final_relaxation = differentiable ? FinalRelaxation::kAllPoints : FinalRelaxation::kLastInterval;
  Options backward = options_.backward;
  backward.storage = Storage::kAllPoints;
  backward.final_relaxation = FinalRelaxation::kAllPoints;
  forward_ = std::make_unique<Solver>(problem_, time_, forward, communicator_, partition_);
  backward_.reset();
  if (!differentiable) return;
  backward_ =
      std::make_unique<Solver>(adjoint_, adjoint_.time(), backward, communicator_, partition_.Mirrored());
}

at::Tensor LayerParallel::Engine::Forward(const at::Tensor& u_0, bool differentiable) {
  const at::NoGradGuard no_grad;
  PrepareSolvers(u_0.detach().contiguous(), differentiable);
  step_->Begin(differentiable);
  last_forward_ = forward_->Solve();
  const int end_owner = partition_.OwnerPosition(time_.steps - 1);
  at::Tensor end =
      position_ == end_owner ? StateAt(time_.steps).clone() : at::empty(state_sizes_, state_options_);
  if (communicator_.size() > 1) comm::Broadcast(communicator_, end, partition_.RankAt(end_owner));
  return end;
}

// Final: the adjoints that gradients are taken with are those of the solution.
std::vector<StepInterval> LayerParallel::Engine::FineSteps(std::int64_t first, std::int64_t last) const {
  std::vector<StepInterval> steps;
  for (std::int64_t step = first; step < last; ++step) {
    steps.push_back(forward_->grid().Interval(0, step));
    steps.back().final = true;
  }
  return steps;
}

const at::Tensor& LayerParallel::Engine::AdjointAt(std::int64_t point) const {
  return backward_->state<at::Tensor>(adjoint_.PointOf(point));
}

std::vector<at::Tensor> LayerParallel::Engine::Backward(const at::Tensor& lambda, bool wants_input_gradient) {
  PLAIT_CHECK(backward_ != nullptr) << "backward was called, but the last Forward recorded no gradients";
  const at::NoGradGuard no_grad;
  adjoint_.set_terminal(lambda.detach().contiguous());
  step_->BeginAdjoint();
  last_backward_ = backward_->Solve();
  at::Tensor input_gradient;
  if (wants_input_gradient) {
    const int owner = partition_.OwnerPosition(0);
    input_gradient = position_ == owner ? AdjointAt(0).clone() : at::empty(state_sizes_, state_options_);
    if (communicator_.size() > 1) comm::Broadcast(communicator_, input_gradient, partition_.RankAt(owner));
  }
  std::vector<at::Tensor> gradients = step_->SharedParameters() ? SharedGradients() : OwnGradients();
  gradients.insert(gradients.begin(), input_gradient);
  return gradients;
}

namespace {

// One flat tensor and a view of it per parameter.
std::vector<at::Tensor> ViewsOf(at::Tensor& flat, const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> views;
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters) {
    views.push_back(flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += parameter.numel();
  }
  return views;
}

}  // namespace

std::vector<at::Tensor> LayerParallel::Engine::SharedGradients() {
  const std::vector<at::Tensor> parameters = step_->Parameters();
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters) count += parameter.numel();
  if (count == 0) return {};
  at::Tensor sum = at::empty({count}, parameters[0].options().requires_grad(false));
  const auto state_at = [this](std::int64_t point) -> const at::Tensor& { return StateAt(point); };
  const auto adjoint_at = [this](std::int64_t point) -> const at::Tensor& { return AdjointAt(point); };
  gradient_sum_->Compute(
      [&](std::int64_t leaf, at::Tensor& flat) {
        std::vector<at::Tensor> views = ViewsOf(flat, parameters);
        step_->AddGradients(FineSteps(LeafBegin(leaf), LeafBegin(leaf + 1)), state_at, adjoint_at,
                            absl::MakeSpan(views));
      },
      sum);
  return ViewsOf(sum, parameters);
}

std::vector<at::Tensor> LayerParallel::Engine::OwnGradients() {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : step_->Parameters()) {
    gradients.push_back(at::zeros_like(parameter, at::MemoryFormat::Contiguous));
  }
  const auto state_at = [this](std::int64_t point) -> const at::Tensor& { return StateAt(point); };
  const auto adjoint_at = [this](std::int64_t point) -> const at::Tensor& { return AdjointAt(point); };
  if (first_step() == last_step()) return gradients;
  step_->AddGradients(FineSteps(first_step(), last_step()), state_at, adjoint_at, absl::MakeSpan(gradients));
  return gradients;
}

void LayerParallel::Engine::set_iterations(int forward, int backward) {
  if (forward == options_.forward.max_iterations && backward == options_.backward.max_iterations) return;
  options_.forward.max_iterations = forward;
  options_.backward.max_iterations = backward;
  forward_.reset();
}

}  // namespace plait::mgrit
