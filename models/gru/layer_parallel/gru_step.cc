#include "models/gru/layer_parallel/gru_step.h"

#include <utility>

namespace plait::gru {

GruStep::GruStep(std::unique_ptr<GruCell> cell, ParameterList parameters, const GruStepOptions& options)
    : cell_(std::move(cell)), parameters_(std::move(parameters)), options_(options) {}

void GruStep::SetInput(const at::Tensor& x) {
  cell_->SetParameters(parameters_());
  if (x.size(0) != batch_) {
    slots_.clear();
    scratch_ = cell_->NewState(x.size(0));
  }
  batch_ = x.size(0);
  x_ = x;
  inputs_.clear();
  inputs_.push_back(cell_->PrepareInputs(x.detach()));
}

std::vector<at::Tensor> GruStep::Parameters() {
  std::vector<at::Tensor> all = parameters_();
  if (x_.defined() && x_.requires_grad()) all.push_back(x_);
  return all;
}

void GruStep::SetOwnSteps(std::int64_t first, std::int64_t last) {
  first_ = first;
  last_ = last;
}

void GruStep::Begin(bool differentiable) {
  differentiable_ = differentiable;
  for (auto& level : slots_) {
    for (Slot& slot : level) slot.saved_valid = slot.has_new_state = false;
  }
}

void GruStep::BeginAdjoint() {
  for (auto& level : slots_) {
    for (Slot& slot : level) slot.gates_valid = false;
  }
}

GruStep::Slot& GruStep::SlotOf(int level, std::int64_t fine_start) {
  if (slots_.size() <= static_cast<std::size_t>(level)) slots_.resize(level + 1);
  if (slots_[level].empty()) slots_[level].resize(last_ - first_);
  Slot& slot = slots_[level][fine_start - first_];
  if (!slot.saved.defined()) slot.saved = cell_->NewSaved(batch_);
  return slot;
}

const GruInputs& GruStep::InputsOf(const mgrit::StepInterval& interval, std::int64_t* index) {
  *index = interval.fine_start;
  if (interval.level == 0 || options_.coarse_input == CoarseInput::kFirst) return inputs_[0];
  const std::int64_t width = interval.fine_stop - interval.fine_start;
  while (inputs_.size() <= static_cast<std::size_t>(interval.level)) inputs_.emplace_back();
  GruInputs& inputs = inputs_[interval.level];
  if (!inputs.x.defined()) inputs = cell_->PrepareInputs(AverageInputs(x_.detach(), width));
  *index = interval.fine_start / width;
  return inputs;
}

GruStepSize GruStep::SizeOf(const mgrit::StepInterval& interval) const {
  const int items = static_cast<int>(interval.fine_stop - interval.fine_start);
  if (options_.coarse_step == CoarseStep::kOneStep || items == 1) return interval.dt();
  return {interval.dt() / items, items};
}

void GruStep::Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  std::int64_t index = 0;
  const GruInputs& inputs = InputsOf(interval, &index);
  if (!differentiable_ || interval.level > 0 || !interval.final) {
    cell_->Step(SizeOf(interval), inputs, index, u, out, nullptr);
    return;
  }
  Slot& slot = SlotOf(0, interval.fine_start);
  cell_->Step(SizeOf(interval), inputs, index, u, out, &slot.saved);
  slot.saved_valid = true;
}

GruStep::Slot& GruStep::Linearised(const mgrit::StepInterval& interval, const at::Tensor& u) {
  Slot& slot = SlotOf(interval.level, interval.fine_start);
  if (slot.saved_valid) return slot;
  std::int64_t index = 0;
  const GruInputs& inputs = InputsOf(interval, &index);
  if (interval.level == 0 && !slot.new_state.defined()) slot.new_state = cell_->NewState(batch_);
  at::Tensor& out = interval.level == 0 ? slot.new_state : scratch_;
  cell_->Step(SizeOf(interval), inputs, index, u, out, &slot.saved);
  slot.saved_valid = true;
  slot.has_new_state = interval.level == 0;
  return slot;
}

void GruStep::Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                      at::Tensor& out) {
  if (interval.level > 0) {
    mgrit::StepInterval at = interval;
    if (options_.coarse_adjoint == CoarseAdjoint::kFineGates) {
      at.level = 0;
      at.fine_stop = at.fine_start + 1;
      at.t_stop = at.t_start + interval.dt() / static_cast<double>(interval.fine_stop - interval.fine_start);
    }
    cell_->StepAdjoint(SizeOf(interval), Linearised(at, u).saved, u, lambda, out, nullptr);
    return;
  }
  Slot& slot = Linearised(interval, u);
  if (!interval.final) {
    cell_->StepAdjoint(SizeOf(interval), slot.saved, u, lambda, out, nullptr);
    return;
  }
  if (!slot.gates.defined()) slot.gates = cell_->NewGateGradients(batch_);
  cell_->StepAdjoint(SizeOf(interval), slot.saved, u, lambda, out, &slot.gates);
  slot.gates_valid = true;
}

void GruStep::AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u,
                           const TensorAt& lambda, absl::Span<at::Tensor> gradients) {
  std::vector<GruGradientTerm> terms;
  for (const mgrit::StepInterval& interval : steps) {
    const std::int64_t step = interval.fine_start;
    Slot& slot = SlotOf(0, step);
    if (!slot.gates_valid) Adjoint(interval, u(step), lambda(step + 1), scratch_);
    terms.push_back({&slot.gates, &u(step), slot.has_new_state ? &slot.new_state : &u(step + 1), step});
  }
  const bool with_input = x_.requires_grad();
  const std::size_t weights = gradients.size() - (with_input ? 1 : 0);
  cell_->AddWeightGradients(inputs_[0], terms, at::TensorList(gradients.data(), weights));
  for (const GruGradientTerm& term : terms) {
    if (with_input) cell_->AddInputGradient(*term.gate_gradients, term.step, gradients.back());
  }
}

}  // namespace plait::gru
