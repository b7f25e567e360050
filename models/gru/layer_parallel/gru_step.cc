#include "models/gru/layer_parallel/gru_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace plait::gru {

// Inputs and slots of a recorded solve.
struct GruStep::Slots final : mgrit::TensorStep::Tape {
  // Slots keep their memory.
  void Clear() override {
    input = {};
    for (auto& level : by_level) {
      for (Slot& slot : level) slot.saved_valid = slot.gates_valid = slot.has_new_state = false;
    }
  }

  Input input;
  // Indexed by level, then by first fine step, counted from the first own step. A coarse step may end after the last
  // own step.
  std::vector<std::deque<Slot>> by_level;
};

std::int64_t SubstepsOf(const GruStepOptions& options, int level, std::int64_t steps) {
  if (level == 0 || options.coarse_hold.empty()) return 1;
  const std::size_t entry = std::min<std::size_t>(level - 1, options.coarse_hold.size() - 1);
  const std::int64_t hold = options.coarse_hold[entry];
  return hold == 0 ? 1 : (steps + hold - 1) / hold;
}

GruStep::GruStep(std::unique_ptr<GruCell> cell, ParameterList parameters, const GruStepOptions& options)
    : cell_(std::move(cell)), parameters_(std::move(parameters)), options_(options) {}
GruStep::~GruStep() = default;

void GruStep::SetInput(const at::Tensor& x) {
  input_ = {parameters_(), x, {}};
  cell_set_for_ = nullptr;
  cell_->SetParameters(input_.parameters);
  input_.prepared = cell_->PrepareInputs(x.detach(), first_, last_ - first_);
  EnsureScratch();
}

void GruStep::EnsureScratch() {
  if (scratch_.defined() && scratch_.size(1) == batch()) return;
  scratch_ = cell_->NewState(batch());
  for (at::Tensor& state : between_) state = cell_->NewState(batch());
}

std::vector<at::Tensor> GruStep::Parameters() {
  std::vector<at::Tensor> all = parameters_();
  if (input_.x.defined() && input_.x.requires_grad()) all.push_back(input_.x);
  return all;
}

std::int64_t GruStep::SharedParameters() const {
  return 4 * cell_->config().layers + (input_.x.defined() && input_.x.requires_grad() ? 1 : 0);
}

void GruStep::SetOwnSteps(std::int64_t first, std::int64_t last) {
  first_ = first;
  last_ = last;
}

std::unique_ptr<mgrit::TensorStep::Tape> GruStep::NewTape() const { return std::make_unique<Slots>(); }

void GruStep::Begin(Tape* tape, const models::BlockContext& /*context*/) {
  slots_ = static_cast<Slots*>(tape);
  cell_set_for_ = slots_;
  if (slots_ != nullptr) slots_->input = input_;
}

// Other solves may have begun since the forward one. Its parameters are unchanged, else autograd has thrown.
void GruStep::BeginAdjoint(Tape& tape) {
  slots_ = static_cast<Slots*>(&tape);
  input_ = slots_->input;
  if (cell_set_for_ != slots_) {
    cell_->SetParameters(input_.parameters);
    cell_set_for_ = slots_;
    EnsureScratch();
  }
  for (auto& level : slots_->by_level) {
    for (Slot& slot : level) slot.gates_valid = false;
  }
}

GruStep::Slot& GruStep::SlotOf(int level, std::int64_t fine_start) {
  auto& by_level = slots_->by_level;
  if (by_level.size() <= static_cast<std::size_t>(level)) by_level.resize(level + 1);
  const auto index = static_cast<std::size_t>(fine_start - first_);
  if (by_level[level].size() <= index) by_level[level].resize(index + 1);  // a deque: references stay valid
  Slot& slot = by_level[level][index];
  if (!slot.saved.defined()) slot.saved = cell_->NewSaved(batch());
  return slot;
}

std::int64_t GruStep::SubstepsOf(const mgrit::StepInterval& interval) const {
  return gru::SubstepsOf(options_, interval.level, interval.fine_stop - interval.fine_start);
}

GruStep::Substep GruStep::SubstepOf(const mgrit::StepInterval& interval, std::int64_t index) const {
  const std::int64_t substeps = SubstepsOf(interval);
  const std::int64_t steps = interval.fine_stop - interval.fine_start;
  const double fine_dt = interval.dt() / static_cast<double>(steps);
  Substep substep = {.start = interval.fine_start + steps * index / substeps,
                     .stop = interval.fine_start + steps * (index + 1) / substeps};
  const std::int64_t width = substep.stop - substep.start;
  if (options_.coarse_step == CoarseStep::kFrozenGates) {
    substep.size = {fine_dt, static_cast<int>(width)};
  } else {
    substep.size = substeps == 1 ? interval.dt() : fine_dt * static_cast<double>(width);
  }
  return substep;
}

at::Tensor& GruStep::NewStateOf(Slot& slot) const {
  if (!slot.new_state.defined()) slot.new_state = cell_->NewState(batch());
  return slot.new_state;
}

void GruStep::Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  if (interval.level > 0) return CoarseForward(interval, u, out);
  if (!Keeps(interval)) {
    cell_->Step(interval.dt(), input_.prepared, interval.fine_start, u, out, nullptr);
    return;
  }
  Slot& slot = SlotOf(0, interval.fine_start);
  cell_->Step(interval.dt(), input_.prepared, interval.fine_start, u, out, &slot.saved);
  slot.saved_valid = true;
}

void GruStep::CoarseForward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  const std::int64_t substeps = SubstepsOf(interval);
  const at::Tensor* state = &u;
  for (std::int64_t i = 0; i < substeps; ++i) {
    const Substep substep = SubstepOf(interval, i);
    at::Tensor& next = i + 1 == substeps ? out : between_[i % 2];
    cell_->Step(substep.size, input_.prepared, substep.start, *state, next, nullptr);
    state = &next;
  }
}

void GruStep::ForwardMany(absl::Span<const Task> tasks) {
  std::map<std::vector<std::pair<double, int>>, std::vector<const Task*>> by_sizes;  // of the substeps
  for (const Task& task : tasks) {
    if (Keeps(task.interval)) {
      Forward(task.interval, *task.u, *task.out);
      continue;
    }
    std::vector<std::pair<double, int>> sizes;
    for (std::int64_t i = 0; i < SubstepsOf(task.interval); ++i) {
      const Substep substep = SubstepOf(task.interval, i);
      sizes.emplace_back(substep.size.dt, substep.size.repeats);
    }
    by_sizes[sizes].push_back(&task);
  }
  for (const auto& [sizes, together] : by_sizes) {
    if (together.size() > 1) {
      StepTogether(together);
    } else {
      Forward(together[0]->interval, *together[0]->u, *together[0]->out);
    }
  }
}

void GruStep::StepTogether(const std::vector<const Task*>& tasks) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> states;
  for (const Task* task : tasks) states.push_back(*task->u);
  at::Tensor state = at::cat(states, 1), next = at::empty_like(state);
  for (std::int64_t i = 0; i < SubstepsOf(tasks[0]->interval); ++i) {
    std::vector<at::Tensor> x;
    for (const Task* task : tasks)
      x.push_back(input_.prepared.x.select(1, SubstepOf(task->interval, i).start));
    GruInputs inputs;
    inputs.x = at::cat(x).unsqueeze(1);
    cell_->Step(SubstepOf(tasks[0]->interval, i).size, inputs, 0, state, next, nullptr);
    std::swap(state, next);
  }
  const std::vector<at::Tensor> results = state.split(batch(), 1);
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i]->out->copy_(results[i]);
}

GruStep::Slot& GruStep::LinearisedFineStep(const mgrit::StepInterval& interval, const at::Tensor& u) {
  Slot& slot = SlotOf(0, interval.fine_start);
  if (slot.saved_valid) return slot;
  cell_->Step(interval.dt(), input_.prepared, interval.fine_start, u, NewStateOf(slot), &slot.saved);
  slot.saved_valid = true;
  slot.has_new_state = true;
  return slot;
}

void GruStep::LineariseCoarseStep(const mgrit::StepInterval& interval, const at::Tensor& u) {
  const std::int64_t substeps = SubstepsOf(interval);
  const at::Tensor* state = &u;
  for (std::int64_t i = 0; i < substeps; ++i) {
    const Substep substep = SubstepOf(interval, i);
    Slot& slot = SlotOf(interval.level, substep.start);
    if (slot.saved_valid) return;  // then all of them are
    at::Tensor& next = i + 1 == substeps ? scratch_ : NewStateOf(slot);
    cell_->Step(substep.size, input_.prepared, substep.start, *state, next, &slot.saved);
    slot.saved_valid = true;
    state = &next;
  }
}

void GruStep::CoarseAdjoint(const mgrit::StepInterval& interval, const at::Tensor& u,
                            const at::Tensor& lambda, at::Tensor& out) {
  LineariseCoarseStep(interval, u);
  const at::Tensor* adjoint = &lambda;
  for (std::int64_t i = SubstepsOf(interval); i-- > 0;) {
    const Substep substep = SubstepOf(interval, i);
    const at::Tensor& state = i == 0 ? u : SlotOf(interval.level, SubstepOf(interval, i - 1).start).new_state;
    cell_->StepAdjoint(substep.size, SlotOf(interval.level, substep.start).saved, state, *adjoint, out,
                       nullptr);
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
  if (!slot.gates.defined()) slot.gates = cell_->NewGateGradients(batch());
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
  const bool with_input = input_.x.requires_grad();
  const std::size_t weights = gradients.size() - (with_input ? 1 : 0);
  cell_->AddWeightGradients(input_.prepared, terms, at::TensorList(gradients.data(), weights));
  for (const GruGradientTerm& term : terms) {
    if (with_input) cell_->AddInputGradient(*term.gate_gradients, term.step, gradients.back());
  }
}

}  // namespace plait::gru
