// A stack of gated recurrent units, one step at a time: the step, its adjoint, and weight gradients over many
// steps.
//
//   auto cell = plait::gru::NewGruCell({.input = 9, .hidden = 100, .layers = 2}, at::kFloat);
//   cell->SetParameters(parameters);                        // after each optimizer step
//   auto inputs = cell->PrepareInputs(x);                   // x: (batch, steps, input)
//   at::Tensor h = cell->NewState(batch), next = cell->NewState(batch), saved = cell->NewSaved(batch);
//   cell->Step(dt, inputs, 0, h, next, &saved);             // next = Phi_0(h)
//   cell->StepAdjoint(dt, saved, h, lambda, lambda_in, &gates);  // lambda_in = (d Phi_0 / d h)^T lambda
//   cell->AddWeightGradients(inputs, {{&gates, &h, &next, 0}}, gradients);
//
// One layer, with x the step's input or the new state of the layer below in the same step (s = sigmoid):
//   r = s(W_ir x + b_ir + W_hr h + b_hr)      z = s(W_iz x + b_iz + W_hz h + b_hz)
//   n = tanh(W_in x + b_in + r (W_hn h + b_hn))
//   classic   h' = h + dt (1 - z) (n - h)              with dt = 1: h' = z h + (1 - z) n, as torch::nn::GRU
//   implicit  (1 + dt (1 - z)) h' = h + dt (1 - z) n   (Moon and Cyr, ICLR 2022, arXiv 2203.04738)
// The coarse levels of a solver in time call the same step with sizes of their own.
//
// Tensors of one cell have one dtype (float32 or float64) and one device. On CPUs, kernels of this library
// work on one thread; elsewhere, and where NewOperatorGruCell is asked for, LibTorch's operators do. On CPUs
// a sample's result has the same bits whatever the batch around it, the alignment, and the way its inputs
// were prepared. Nothing is recorded by autograd. Nothing allocates after the first call with a batch size,
// but on the operator path. Not thread-safe: a cell has scratch memory. Wrong shapes and types throw
// c10::Error.
#ifndef PLAIT_MODELS_GRU_CELL_H_
#define PLAIT_MODELS_GRU_CELL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace plait::gru {

enum class GruKind { kClassic, kImplicit };

// kBFloat16: both factors of every matrix product are rounded to bfloat16; sums, states, activations and
// parameters keep the dtype.
enum class GruProducts { kFull, kBFloat16 };

// A step of size `dt`, done `repeats` times with the gates of the first: what `repeats` steps would do if the
// gates stood still. A coarse level of a solver in time follows its fine level more closely with repeats of
// the fine dt than with one long step.
struct GruStepSize {
  GruStepSize(double step_dt, int step_repeats = 1)
      : dt(step_dt), repeats(step_repeats) {}  // NOLINT: a plain dt is one
  double dt;
  int repeats;
};

struct GruConfig {
  std::int64_t input = 1;
  std::int64_t hidden = 1;
  std::int64_t layers = 1;
  GruKind kind = GruKind::kClassic;
  GruProducts products = GruProducts::kFull;
};

// Inputs of all steps, in the form that Step reads. Holds x or a copy.
struct GruInputs {
  at::Tensor x;      // (batch, steps, input), last dimension contiguous
  at::Tensor gates;  // (count, private layout): bias and product with layer 0's weights of the steps from
                     // `first` on; undefined where Step forms them
  std::int64_t first = 0;
};

// One step's share in the weight gradients.
struct GruGradientTerm {
  const at::Tensor* gate_gradients = nullptr;  // from StepAdjoint
  const at::Tensor* state = nullptr;           // what Step read,
  const at::Tensor* new_state = nullptr;       // and wrote (of the lower layers)
  std::int64_t step = 0;                       // which of the inputs
};

class GruCell {
 public:
  virtual ~GruCell() = default;

  const GruConfig& config() const { return config_; }
  const at::TensorOptions& options() const { return options_; }

  // Per layer weight_ih (3 hidden, input or hidden), weight_hh (3 hidden, hidden), bias_ih, bias_hh (3
  // hidden), as torch orders them. Copies: later changes are seen at the next call. Cheap: about a tenth of a
  // step.
  virtual void SetParameters(at::TensorList parameters) = 0;

  // x: (batch, steps, input). Once for all levels and iterations, after SetParameters. Work that pays to be
  // done once is done for the steps first ... first + count - 1; Step does it for the others.
  virtual GruInputs PrepareInputs(const at::Tensor& x, std::int64_t first, std::int64_t count) = 0;
  GruInputs PrepareInputs(const at::Tensor& x) { return PrepareInputs(x, 0, x.size(1)); }

  // (layers, batch, hidden), zero.
  at::Tensor NewState(std::int64_t batch) const;
  // Slots of private layout, not initialised, one per step whose adjoint is wanted.
  virtual at::Tensor NewSaved(std::int64_t batch) const = 0;
  virtual at::Tensor NewGateGradients(std::int64_t batch) const = 0;

  // new_state = Phi(state) over step `step` of `inputs`; they must be different tensors, contiguous.
  virtual void Step(GruStepSize size, const GruInputs& inputs, std::int64_t step, const at::Tensor& state,
                    at::Tensor& new_state, at::Tensor* saved) = 0;

  // lambda_in = (d Phi / d state)^T lambda_out, with `saved` and `state` of the step. lambda_in may be
  // lambda_out.
  virtual void StepAdjoint(GruStepSize size, const at::Tensor& saved, const at::Tensor& state,
                           const at::Tensor& lambda_out, at::Tensor& lambda_in,
                           at::Tensor* gate_gradients) = 0;

  // gradients += sum over terms of (d Phi / d parameters)^T lambda_out; gradients as in SetParameters,
  // contiguous. The sum of one call is formed in the order of `terms` and added once: its bits depend on this
  // block alone.
  virtual void AddWeightGradients(const GruInputs& inputs, const std::vector<GruGradientTerm>& terms,
                                  at::TensorList gradients) = 0;

  // x_gradient(:, step, :) += (d Phi / d x)^T lambda_out; x_gradient (batch, steps, input), last dimension
  // contiguous.
  virtual void AddInputGradient(const at::Tensor& gate_gradients, std::int64_t step,
                                at::Tensor& x_gradient) = 0;

 protected:
  GruCell(const GruConfig& config, const at::TensorOptions& options);
  std::int64_t InputOf(std::int64_t layer) const { return layer == 0 ? config_.input : config_.hidden; }
  void CheckParameters(at::TensorList parameters) const;
  void CheckInputs(const at::Tensor& x) const;

 private:
  GruConfig config_;
  at::TensorOptions options_;
};

// `options`: dtype and device. The fastest cell for them.
std::unique_ptr<GruCell> NewGruCell(const GruConfig& config, const at::TensorOptions& options);
// A cell on LibTorch's operators, for any device.
std::unique_ptr<GruCell> NewOperatorGruCell(const GruConfig& config, const at::TensorOptions& options);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_CELL_H_
