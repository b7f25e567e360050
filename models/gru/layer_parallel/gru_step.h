// The GRU as a step of the layer-parallel solver: kernels, a hand-written adjoint, weight gradients in
// blocks.
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

// What a coarse step over several items of the sequence reads: the first of them, or their mean.
enum class CoarseInput { kFirst, kMean };
// Where a coarse adjoint step is linearised: at the coarse step itself, or with the gates of the fine step at
// its left end, which are at hand (for one layer both are the same).
enum class CoarseAdjoint { kCoarseStep, kFineGates };

// What a coarse step over several items does: one step of their common length, or the fine step repeated with
// the gates of its beginning (GruStepSize), which follows the fine level more closely at the same cost.
enum class CoarseStep { kOneStep, kFrozenGates };

struct GruStepOptions {
  CoarseStep coarse_step = CoarseStep::kFrozenGates;
  CoarseInput coarse_input = CoarseInput::kMean;
  CoarseAdjoint coarse_adjoint = CoarseAdjoint::kCoarseStep;
};

class GruStep final : public mgrit::TensorStep {
 public:
  // Gives the current parameters, in the order of GruCell::SetParameters.
  using ParameterList = std::function<std::vector<at::Tensor>()>;

  GruStep(std::unique_ptr<GruCell> cell, ParameterList parameters, const GruStepOptions& options);

  // x: (batch, steps, input), the same on every rank. Before each solve. Reads the parameters.
  void SetInput(const at::Tensor& x);
  const GruCell& cell() const { return *cell_; }

  // The input is one of them if it requires a gradient.
  std::vector<at::Tensor> Parameters() override;
  bool SharedParameters() const override { return true; }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override;
  void Begin(bool differentiable) override;
  void BeginAdjoint() override;
  void Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  void Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override;
  void AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override;

 private:
  // What is kept of a step at the forward states: its activations and, after the adjoint, its gate gradients.
  struct Slot {
    at::Tensor saved;
    at::Tensor gates;
    at::Tensor new_state;  // where the solver's own next state is not this step's result
    bool saved_valid = false;
    bool gates_valid = false;
    bool has_new_state = false;
  };

  Slot& SlotOf(int level, std::int64_t fine_start);
  const GruInputs& InputsOf(const mgrit::StepInterval& interval, std::int64_t* index);
  GruStepSize SizeOf(const mgrit::StepInterval& interval) const;
  Slot& Linearised(const mgrit::StepInterval& interval, const at::Tensor& u);

  std::unique_ptr<GruCell> cell_;
  ParameterList parameters_;
  GruStepOptions options_;
  at::Tensor x_;
  std::vector<GruInputs> inputs_;         // by level; level 0 first, others when coarse inputs are means
  std::vector<std::vector<Slot>> slots_;  // by level, then by own fine step at the left end
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::int64_t batch_ = 0;
  bool differentiable_ = false;
  at::Tensor scratch_;
};

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_LAYER_PARALLEL_GRU_STEP_H_
