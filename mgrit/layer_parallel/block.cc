#include "mgrit/layer_parallel/block.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plait::mgrit {

void TensorStep::ForwardMany(absl::Span<const Task> tasks) {
  for (const Task& task : tasks) Forward(task.interval, *task.u, *task.out);
}

BlockStep::BlockStep(Factory make_block) : make_block_(std::move(make_block)) {}
BlockStep::BlockStep(std::shared_ptr<Block> shared) : shared_(std::move(shared)) {}

void BlockStep::SetOwnSteps(std::int64_t first, std::int64_t last) {
  first_ = first;
  last_ = last;
  if (shared_ != nullptr) return;
  own_.clear();
  for (std::int64_t step = first; step < last; ++step) own_.push_back(make_block_(step));
}

std::vector<at::Tensor> BlockStep::Parameters() {
  if (shared_ != nullptr) return shared_->Parameters();
  std::vector<at::Tensor> all;
  for (const auto& block : own_) {
    for (at::Tensor& parameter : block->Parameters()) all.push_back(std::move(parameter));
  }
  return all;
}

Block& BlockStep::BlockOf(std::int64_t step) const {
  if (shared_ != nullptr) return *shared_;
  PLAIT_CHECK(first_ <= step && step < last_)
      << "step " << step << " is not one of " << first_ << " ... " << last_ - 1;
  return *own_[step - first_];
}

void BlockStep::Begin(bool differentiable) {
  differentiable_ = differentiable;
  recorded_.clear();
}

BlockStep::Recorded BlockStep::Record(std::int64_t step, double dt, const at::Tensor& u) const {
  const at::AutoGradMode record(true);
  Recorded recorded;
  recorded.u = u.detach().clone().requires_grad_(true);
  recorded.out = BlockOf(step).Forward(recorded.u, dt);
  return recorded;
}

void BlockStep::Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  if (differentiable_ && interval.final && interval.level == 0) {
    recorded_.resize(std::max<std::size_t>(recorded_.size(), 1));
    recorded_[0].resize(last_ - first_);
    Recorded& kept = recorded_[0][interval.fine_start - first_];
    kept = Record(interval.fine_start, interval.dt(), u);
    out = kept.out.detach().clone(at::MemoryFormat::Contiguous);
    return;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor result = BlockOf(interval.fine_stop - 1).Forward(u, interval.dt());
  out = result.is_alias_of(u) ? result.clone() : result.contiguous();
}

const BlockStep::Recorded& BlockStep::RecordedAt(const StepInterval& interval, const at::Tensor& u) {
  const std::size_t level = static_cast<std::size_t>(interval.level);
  if (recorded_.size() <= level) recorded_.resize(level + 1);
  recorded_[level].resize(last_ - first_);
  Recorded& recorded = recorded_[level][interval.fine_start - first_];
  if (!recorded.u.defined()) recorded = Record(interval.fine_start, interval.dt(), u);
  return recorded;
}

void BlockStep::Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                        at::Tensor& out) {
  const Recorded& recorded = RecordedAt(interval, u);
  out = torch::autograd::grad({recorded.out}, {recorded.u}, {lambda}, /*retain_graph=*/true)[0].contiguous();
}

void BlockStep::AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                             absl::Span<at::Tensor> gradients) {
  std::size_t offset = 0;
  for (std::int64_t step = first_; shared_ == nullptr && step < steps.front().fine_start; ++step) {
    offset += BlockOf(step).Parameters().size();
  }
  for (const StepInterval& interval : steps) {
    const std::int64_t step = interval.fine_start;
    const Recorded& recorded = RecordedAt(interval, u(step));
    const std::vector<at::Tensor> parameters = BlockOf(step).Parameters();
    const auto parts =
        torch::autograd::grad({recorded.out}, parameters, {lambda(step + 1)}, /*retain_graph=*/true,
                              /*create_graph=*/false, /*allow_unused=*/true);
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (parts[p].defined()) gradients[offset + p].add_(parts[p]);
    }
    if (shared_ == nullptr) offset += parameters.size();
  }
}

}  // namespace plait::mgrit
