#include "mgrit/layer_parallel/network_solve.h"

#include <ATen/ops/zeros_like.h>

namespace plait::mgrit {
namespace {

Options ForwardOptions(Options options, bool recorded) {
  options.storage = Storage::kAllPoints;
  options.final_relaxation = recorded ? FinalRelaxation::kAllPoints : FinalRelaxation::kLastInterval;
  return options;
}

Options BackwardOptions(Options options) {
  options.storage = Storage::kAllPoints;
  options.final_relaxation = FinalRelaxation::kAllPoints;
  return options;
}

}  // namespace

at::Tensor NetworkProblem::Make(int) { return at::zeros_like(u_0_, at::MemoryFormat::Contiguous); }

void NetworkProblem::Initialize(std::int64_t, double, at::Tensor& u) {
  StateOperations<at::Tensor>::Copy(u_0_, u);
}

void NetworkProblem::Step(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  StepInterval step = interval;
  step.final = interval.final && final_;
  step_.Forward(step, u, out);
}

void NetworkProblem::StepMany(absl::Span<const StepTask> tasks) {
  std::vector<TensorStep::Task> tensor_tasks;
  for (const StepTask& task : tasks) {
    tensor_tasks.push_back({task.interval, &Value<at::Tensor>(*task.u), &Value<at::Tensor>(*task.out)});
    tensor_tasks.back().interval.final = task.interval.final && final_;
  }
  step_.ForwardMany(tensor_tasks);
}

void NetworkProblem::StepAdjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                                 at::Tensor& out) {
  step_.Adjoint(interval, u, lambda, out);
}

NetworkSolve::NetworkSolve(TensorStep& step, const TimeGrid& time, const LayerParallelOptions& options,
                           const comm::Communicator& communicator, const Partition& partition,
                           const at::Tensor& u_0, bool recorded)
    : step_(step),
      problem_(step, u_0),
      forward_(problem_, time, ForwardOptions(options.forward, recorded), communicator, partition),
      adjoint_(problem_, time, [this](std::int64_t point) -> const at::Tensor& { return StateAt(point); }) {
  forward_.set_observer([this](int, const Solution& so_far) { problem_.set_final(!so_far.diverged); });
  if (!recorded) return;
  backward_ = std::make_unique<Solver>(adjoint_, adjoint_.time(), BackwardOptions(options.backward),
                                       communicator, partition.Mirrored());
  tape_ = step.NewTape();
}

bool NetworkSolve::Fits(const at::Tensor& u_0, bool recorded) const {
  const at::Tensor& mine = problem_.input();
  return mine.sizes() == u_0.sizes() && mine.dtype() == u_0.dtype() && mine.device() == u_0.device() &&
         recorded == (tape_ != nullptr);
}

void NetworkSolve::set_iterations(int forward, int backward) {
  forward_.set_max_iterations(forward);
  if (backward_ != nullptr) backward_->set_max_iterations(backward);
}

Solution NetworkSolve::Solve(Solver& solver, Propagation propagation) const {
  if (propagation == Propagation::kSerial) return solver.SolveSerially();
  return continues_ ? solver.Continue() : solver.Solve();
}

Solution NetworkSolve::Forward(const at::Tensor& u_0, const models::BlockContext& context,
                               Propagation propagation) {
  problem_.set_input(u_0);
  problem_.set_final(true);
  Clear();
  step_.Begin(tape_.get(), context);
  Solution solution = Solve(forward_, propagation);
  if (tape_ == nullptr || !forward_.owns_points() || solution.diverged) return solution;
  step_.EndForward(FineSteps(forward_.first_point(), forward_.last_point()),
                   [this](std::int64_t point) -> const at::Tensor& { return StateAt(point); });
  return solution;
}

Solution NetworkSolve::Adjoint(const at::Tensor& lambda, Propagation propagation) {
  adjoint_.set_terminal(lambda);
  step_.BeginAdjoint(*tape_);
  return Solve(*backward_, propagation);
}

void NetworkSolve::Clear() {
  if (tape_ != nullptr) tape_->Clear();
}

// Marked final: gradients are computed at the final states and adjoints.
std::vector<StepInterval> NetworkSolve::FineSteps(std::int64_t first, std::int64_t last) const {
  std::vector<StepInterval> steps;
  for (std::int64_t step = first; step < last; ++step) {
    steps.push_back(forward_.grid().Interval(0, step));
    steps.back().final = true;
  }
  return steps;
}

}  // namespace plait::mgrit
