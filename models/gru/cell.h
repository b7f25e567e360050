// A stack of gated recurrent units, one step at a time: the step, its adjoint, and weight gradients over many
// steps.
//
//   auto cell = plait::gru::NewGruCell({.input = 9, .hidden = 100, .layers = 2}, at::kFloat);
//   cell->SetParameters(parameters);                        // after each optimizer step
//   auto inputs = cell->PrepareInputs(x);                   // x: (batch, steps, input)
//   at::Tensor h = cell->NewState(batch), next = cell->NewState(batch), saved = cell->NewSaved(batch);
//   at::Tensor gates = cell->NewGateGradients(batch);
//   cell->Step(dt, inputs, 0, h, next, &saved);             // next = Phi_0(h)
//   cell->StepAdjoint(dt, saved, h, lambda, lambda_in, &gates);  // lambda_in = (d Phi_0 / d h)^T lambda
//   cell->AddWeightGradients(inputs, {{&gates, &h, &next, 0}}, gradients);
//
// One layer, with x the step's input or the new state of the layer below in the same step (s = sigmoid):
//   r = s(W_ir x + b_ir + W_hr h + b_hr)      z = s(W_iz x + b_iz + W_hz h + b_hz)
//   n = tanh(W_in x + b_in + r (W_hn h + b_hn))
//   classic   h' = h + dt (1 - z) (n - h)              with dt = 1: h' = z h + (1 - z) n, as torch::nn::GRU
//   implicit  (1 + dt (1 - z)) h' = h + dt (1 - z) n   (Moon and Cyr, ICLR 2022, arXiv 2203.04738)
// Coarse levels of a multigrid solver in time call the same step with their own step sizes.
//
// All tensors of a cell have one dtype (float32 or float64) and one device. On CPUs own kernels run on one thread; on
// other devices, and in cells of NewOperatorGruCell, LibTorch's operators do. With own kernels a sample's results are
// bitwise identical in any batch, at any alignment, and however its inputs were prepared, and Step and StepAdjoint do
// not allocate after their first call with a batch size. Nothing is recorded by autograd. Not thread-safe: a cell has
// scratch memory. Wrong shapes and dtypes throw c10::Error.
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

// A step of size `dt`, applied `repeats` times with the gates of the first: equal to `repeats` steps with frozen
// gates. On a coarse level of a multigrid solver in time this approximates the fine level better than one long step.
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

// Inputs of all steps, as PrepareInputs makes them for Step. Holds x itself or a copy.
struct GruInputs {
  at::Tensor x;      // (batch, steps, input), last dimension contiguous
  at::Tensor gates;  // (count, private layout): product with layer 0's weights plus bias, for steps from
                     // `first` on; undefined if Step computes them
  std::int64_t first = 0;
};

// One step's contribution to the weight gradients. Tensors are not owned.
struct GruGradientTerm {
  const at::Tensor* gate_gradients = nullptr;  // from StepAdjoint
  const at::Tensor* state = nullptr;           // what Step read
  const at::Tensor* new_state = nullptr;       // what Step wrote; read for all layers but the top one
  std::int64_t step = 0;                       // index into the inputs
};

class GruCell {
 public:
  virtual ~GruCell() = default;

  const GruConfig& config() const { return config_; }
  const at::TensorOptions& options() const { return options_; }

  // Per layer weight_ih (3 hidden, input or hidden), weight_hh (3 hidden, hidden), bias_ih, bias_hh (3
  // hidden), in torch's order. Copies them: call it again after they change. Costs about a tenth of a step.
  virtual void SetParameters(at::TensorList parameters) = 0;

  // x: (batch, steps, input). Call it once for all levels and iterations, after SetParameters. For many input features
  // it computes the input products of steps first ... first + count - 1 in advance; Step computes the others.
  virtual GruInputs PrepareInputs(const at::Tensor& x, std::int64_t first, std::int64_t count) = 0;
  GruInputs PrepareInputs(const at::Tensor& x) { return PrepareInputs(x, 0, x.size(1)); }

  // (layers, batch, hidden), zero.
  at::Tensor NewState(std::int64_t batch) const;
  // Uninitialized memory in a private layout, one of each per step whose adjoint is computed: activations that Step
  // saves, and gate gradients of StepAdjoint.
  virtual at::Tensor NewSaved(std::int64_t batch) const = 0;
  virtual at::Tensor NewGateGradients(std::int64_t batch) const = 0;

  // new_state = Phi(state), with step `step` of `inputs`. States are (layers, batch, hidden), contiguous; `new_state`
  // must not share memory with `state`. `saved`: activations for StepAdjoint, or null.
  virtual void Step(GruStepSize size, const GruInputs& inputs, std::int64_t step, const at::Tensor& state,
                    at::Tensor& new_state, at::Tensor* saved) = 0;

  // lambda_in = (d Phi / d state)^T lambda_out, with `size`, `saved` and `state` of the step. lambda_in may be
  // lambda_out. `gate_gradients`: written for AddWeightGradients and AddInputGradient, or null.
  virtual void StepAdjoint(GruStepSize size, const at::Tensor& saved, const at::Tensor& state,
                           const at::Tensor& lambda_out, at::Tensor& lambda_in,
                           at::Tensor* gate_gradients) = 0;

  // gradients += sum over terms of (d Phi / d parameters)^T lambda_out; gradients as in SetParameters, contiguous. The
  // sum of one call is formed in the order of `terms` and added once, so that it does not depend on earlier calls.
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

// Returns the fastest cell for the dtype and device of `options`.
std::unique_ptr<GruCell> NewGruCell(const GruConfig& config, const at::TensorOptions& options);
// Returns a cell that uses LibTorch's operators, for any device.
std::unique_ptr<GruCell> NewOperatorGruCell(const GruConfig& config, const at::TensorOptions& options);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_CELL_H_
