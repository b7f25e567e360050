#include "models/gru/layer_parallel/gru_step.h"

#include <algorithm>
#include <utility>

namespace plait::gru {

std::int64_t PartsOfStep(const GruStepOptions& options, int level, std::int64_t items) {
  if (level == 0 || options.coarse_hold.empty()) return 1;
  const std::size_t entry = std::min<std::size_t>(level - 1, options.coarse_hold.size() - 1);
  const std::int64_t hold = options.coarse_hold[entry];
  return hold == 0 ? 1 : (items + hold - 1) / hold;
}

GruStep::GruStep(std::unique_ptr<GruCell> cell, ParameterList parameters, const GruStepOptions& options)
    : cell_(std::move(cell)), parameters_(std::move(parameters)), options_(options) {}

void GruStep::SetInput(const at::Tensor& x) {
  cell_->SetParameters(parameters_());
  if (x.size(0) != batch_) {
    slots_.clear();
    scratch_ = cell_->NewState(x.size(0));
    for (at::Tensor& state : between_) state = cell_->NewState(x.size(0));
  }
  batch_ = x.size(0);
  x_ = x;
  inputs_ = cell_->PrepareInputs(x.detach());
}

std::vector<at::Tensor> GruStep::Parameters() {
  std::vector<at::Tensor> all = parameters_();
  if (x_.defined() && x_.requires_grad()) all.push_back(x_);
  return all;
}

void GruStep::SetOwnSteps(std::int64_t first, std::int64_t /*last*/) { first_ = first; }

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
  const auto index = static_cast<std::size_t>(fine_start - first_);
  if (slots_[level].size() <= index) slots_[level].resize(index + 1);  // moves no slot
  Slot& slot = slots_[level][index];
  if (!slot.saved.defined()) slot.saved = cell_->NewSaved(batch_);
  return slot;
}

std::int64_t GruStep::PartsOf(const mgrit::StepInterval& interval) const {
  return PartsOfStep(options_, interval.level, interval.fine_stop - interval.fine_start);
}

GruStep::Part GruStep::PartOf(const mgrit::StepInterval& interval, std::int64_t index) const {
  const std::int64_t parts = PartsOf(interval);
  const std::int64_t items = interval.fine_stop - interval.fine_start;
  const double item_dt = interval.dt() / static_cast<double>(items);
  Part part = {.start = interval.fine_start + items * index / parts,
               .stop = interval.fine_start + items * (index + 1) / parts};
  const std::int64_t width = part.stop - part.start;
  if (options_.coarse_step == CoarseStep::kFrozenGates) {
    part.size = {item_dt, static_cast<int>(width)};
  } else {
    part.size = parts == 1 ? interval.dt() : item_dt * static_cast<double>(width);
  }
  return part;
}

at::Tensor& GruStep::NewStateOf(Slot& slot) const {
  if (!slot.new_state.defined()) slot.new_state = cell_->NewState(batch_);
  return slot.new_state;
}

void GruStep::Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  if (interval.level > 0) return CoarseForward(interval, u, out);
  if (!differentiable_ || !interval.final) {
    cell_->Step(interval.dt(), inputs_, interval.fine_start, u, out, nullptr);
    return;
  }
  Slot& slot = SlotOf(0, interval.fine_start);
  cell_->Step(interval.dt(), inputs_, interval.fine_start, u, out, &slot.saved);
  slot.saved_valid = true;
}

void GruStep::CoarseForward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  const std::int64_t parts = PartsOf(interval);
  const at::Tensor* state = &u;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Part part = PartOf(interval, i);
    at::Tensor& next = i + 1 == parts ? out : between_[i % 2];
    cell_->Step(part.size, inputs_, part.start, *state, next, nullptr);
    state = &next;
  }
}

GruStep::Slot& GruStep::LinearisedFineStep(const mgrit::StepInterval& interval, const at::Tensor& u) {
  Slot& slot = SlotOf(0, interval.fine_start);
  if (slot.saved_valid) return slot;
  cell_->Step(interval.dt(), inputs_, interval.fine_start, u, NewStateOf(slot), &slot.saved);
  slot.saved_valid = true;
  slot.has_new_state = true;
  return slot;
}

void GruStep::LineariseCoarseStep(const mgrit::StepInterval& interval, const at::Tensor& u) {
  const std::int64_t parts = PartsOf(interval);
  const at::Tensor* state = &u;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Part part = PartOf(interval, i);
    Slot& slot = SlotOf(interval.level, part.start);
    if (slot.saved_valid) return;  // then all of them are
    at::Tensor& next = i + 1 == parts ? scratch_ : NewStateOf(slot);
    cell_->Step(part.size, inputs_, part.start, *state, next, &slot.saved);
    slot.saved_valid = true;
    state = &next;
  }
}

void GruStep::CoarseAdjoint(const mgrit::StepInterval& interval, const at::Tensor& u,
                            const at::Tensor& lambda, at::Tensor& out) {
  LineariseCoarseStep(interval, u);
  const at::Tensor* adjoint = &lambda;
  for (std::int64_t i = PartsOf(interval); i-- > 0;) {
    const Part part = PartOf(interval, i);
    const at::Tensor& state = i == 0 ? u : SlotOf(interval.level, PartOf(interval, i - 1).start).new_state;
    cell_->StepAdjoint(part.size, SlotOf(interval.level, part.start).saved, state, *adjoint, out, nullptr);
    adjoint = &out;
  }
}

void GruStep::Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                      at::Tensor& out) {
  if (interval.level > 0) return CoarseAdjoint(interval, u, lambda, out);
  Slot& slot = LinearisedFineStep(interval, u);
  if (!interval.final) {
    cell_->StepAdjoint(interval.dt(), slot.saved, u, lambda, out, nullptr);
    return;
  }
  if (!slot.gates.defined()) slot.gates = cell_->NewGateGradients(batch_);
  cell_->StepAdjoint(interval.dt(), slot.saved, u, lambda, out, &slot.gates);
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
  cell_->AddWeightGradients(inputs_, terms, at::TensorList(gradients.data(), weights));
  for (const GruGradientTerm& term : terms) {
    if (with_input) cell_->AddInputGradient(*term.gate_gradients, term.step, gradients.back());
  }
}

}  // namespace plait::gru
