// The GRU as a step of the layer-parallel solver: own kernels, a hand-written adjoint, and weight gradients over blocks
// of steps. Local.
#ifndef PLAIT_MODELS_GRU_LAYER_PARALLEL_GRU_STEP_H_
#define PLAIT_MODELS_GRU_LAYER_PARALLEL_GRU_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mgrit/layer_parallel/tensor_step.h"
#include "models/gru/cell.h"

namespace plait::gru {

// What replaces several steps of level 0 on a coarser level: one step of their total length, or the fine step repeated
// with frozen gates (GruStepSize), which approximates the fine level better at the same cost. Both use the input of
// the first of the steps.
enum class CoarseStep { kOneStep, kFrozenGates };

struct GruStepOptions {
  CoarseStep coarse_step = CoarseStep::kFrozenGates;
  // Most steps of level 0 per evaluation of the cell, by level, level 1 first; the last entry also applies to all
  // coarser levels. A coarse step over more steps is divided into substeps; 0, or an empty list: no substeps. Shorter
  // substeps approximate the fine level better; each costs one evaluation of the cell. Not negative.
  std::vector<int> coarse_hold = {2, 4};
};

// Number of substeps of a step of `level` over `steps` steps of level 0, each one evaluation of the cell; 1 on level
// 0.
std::int64_t SubstepsOf(const GruStepOptions& options, int level, std::int64_t steps);

class GruStep final : public mgrit::TensorStep {
 public:
  // Returns the current parameters, in the order of GruCell::SetParameters.
  using ParameterList = std::function<std::vector<at::Tensor>()>;

  GruStep(std::unique_ptr<GruCell> cell, ParameterList parameters, const GruStepOptions& options);
  ~GruStep() override;

  // x: (batch, steps, input), the same on every rank. Call it before each solve; it also reads the parameters.
  void SetInput(const at::Tensor& x);
  const GruCell& cell() const { return *cell_; }
  // Takes effect at the next solve. Must not be called between a recorded solve and its backward.
  void set_options(const GruStepOptions& options) { options_ = options; }

  // Those of the cell, then the input if it requires a gradient.
  std::vector<at::Tensor> Parameters() override;
  std::int64_t SharedParameters() const override;
  std::int64_t Evaluations(const mgrit::StepInterval& interval) const override {
    return SubstepsOf(interval);
  }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override;
  std::unique_ptr<Tape> NewTape() const override;
  void Begin(Tape* tape, const models::BlockContext& context) override;
  void BeginAdjoint(Tape& tape) override;
  void Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  // One product for the states of all tasks. On CPUs bitwise equal to Forward but not faster: input products are
  // recomputed, and states copied.
  void ForwardMany(absl::Span<const Task> tasks) override;
  bool PrefersMany() const override { return !cell_->options().device().is_cpu(); }
  void Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override;
  void AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override;

 private:
  // What is kept of a step, or of a substep of a coarse step, linearized at the forward states: its activations and,
  // after the adjoint, its gate gradients.
  struct Slot {
    at::Tensor saved;
    at::Tensor gates;
    at::Tensor new_state;  // the step's result, if the solver does not hold it
    bool saved_valid = false;
    bool gates_valid = false;
    bool has_new_state = false;
  };
  // Inputs of the cell besides states.
  struct Input {
    std::vector<at::Tensor> parameters;
    at::Tensor x;
    GruInputs prepared;
  };
  struct Slots;  // the tape

  // Steps [start, stop) of level 0, computed with one evaluation of the cell.
  struct Substep {
    std::int64_t start = 0;
    std::int64_t stop = 0;
    GruStepSize size = 1.0;
  };
  std::int64_t SubstepsOf(const mgrit::StepInterval& interval) const;
  Substep SubstepOf(const mgrit::StepInterval& interval, std::int64_t index) const;

  bool Keeps(const mgrit::StepInterval& interval) const {
    return slots_ != nullptr && interval.final && interval.level == 0;
  }
  // For tasks whose substeps have the same sizes.
  void StepTogether(const std::vector<const Task*>& tasks);
  std::int64_t batch() const { return input_.x.size(0); }
  void EnsureScratch();
  Slot& SlotOf(int level, std::int64_t fine_start);
  at::Tensor& NewStateOf(Slot& slot) const;
  Slot& LinearisedFineStep(const mgrit::StepInterval& interval, const at::Tensor& u);
  void LineariseCoarseStep(const mgrit::StepInterval& interval, const at::Tensor& u);
  void CoarseForward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out);
  void CoarseAdjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                     at::Tensor& out);

  std::unique_ptr<GruCell> cell_;
  ParameterList parameters_;
  GruStepOptions options_;
  std::int64_t first_ = 0;  // own steps
  std::int64_t last_ = 0;
  Input input_;             // of the current solve
  Slots* slots_ = nullptr;  // its tape; null: nothing is kept
  const Slots* cell_set_for_ = nullptr;
  at::Tensor scratch_;
  at::Tensor between_[2];  // states between the substeps of a coarse step
};

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_LAYER_PARALLEL_GRU_STEP_H_
