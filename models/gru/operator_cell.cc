// The cell that uses LibTorch's operators: for any device, and the reference in tests of the kernels.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "models/gru/cell.h"

namespace plait::gru {
namespace {

// saved: (layers, 4, batch, hidden), r, z, n, hn; gate gradients: (layers, batch, 4 hidden), in the same order.
class OperatorGruCell final : public GruCell {
 public:
  OperatorGruCell(const GruConfig& config, const at::TensorOptions& options) : GruCell(config, options) {}

  void SetParameters(at::TensorList parameters) override {
    const c10::NoGradGuard no_grad;
    CheckParameters(parameters);
    parameters_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor copy = parameters[i].detach().clone();
      parameters_.push_back(i % 4 < 2 ? Factor(copy) : copy);
    }
  }

  using GruCell::PrepareInputs;
  GruInputs PrepareInputs(const at::Tensor& x, std::int64_t /*first*/, std::int64_t /*count*/) override {
    CheckInputs(x);
    return {x.detach(), {}};
  }
  at::Tensor NewSaved(std::int64_t batch) const override {
    return at::empty({config().layers, 4, batch, config().hidden}, options());
  }
  at::Tensor NewGateGradients(std::int64_t batch) const override {
    return at::empty({config().layers, batch, 4 * config().hidden}, options());
  }

  void Step(GruStepSize size, const GruInputs& inputs, std::int64_t step, const at::Tensor& state,
            at::Tensor& new_state, at::Tensor* saved) override {
    const c10::NoGradGuard no_grad;
    at::Tensor x = inputs.x.select(1, step);
    for (std::int64_t layer = 0; layer < config().layers; ++layer) {
      const at::Tensor* p = &parameters_[4 * layer];
      const at::Tensor h = state.select(0, layer);
      const auto in = at::addmm(p[2], Factor(x), p[0].t()).chunk(3, 1);
      const auto hid = at::addmm(p[3], Factor(h), p[1].t()).chunk(3, 1);
      const at::Tensor r = at::sigmoid(in[0] + hid[0]);
      const at::Tensor z = at::sigmoid(in[1] + hid[1]);
      const at::Tensor n = at::tanh(in[2] + r * hid[2]);
      x = h + Share(size, z) * (n - h);
      new_state.select(0, layer).copy_(x);
      if (saved) saved->select(0, layer).copy_(at::stack({r, z, n, hid[2]}));
    }
  }

  void StepAdjoint(GruStepSize size, const at::Tensor& saved, const at::Tensor& state,
                   const at::Tensor& lambda_out, at::Tensor& lambda_in, at::Tensor* gate_gradients) override {
    const c10::NoGradGuard no_grad;
    const std::int64_t hidden = config().hidden;
    at::Tensor from_above;  // gradient through the input of the layer above
    for (std::int64_t layer = config().layers - 1; layer >= 0; --layer) {
      const at::Tensor lambda = layer + 1 == config().layers ? lambda_out.select(0, layer)
                                                             : lambda_out.select(0, layer) + from_above;
      const auto s = saved.select(0, layer).unbind(0);
      const at::Tensor &r = s[0], &z = s[1], &n = s[2], &hn = s[3];
      const at::Tensor h = state.select(0, layer);
      const at::Tensor share = Share(size, z);
      const at::Tensor gn = lambda * share * (1 - n * n);
      const at::Tensor gz = lambda * (n - h) * ShareSlope(size, z) * z * (1 - z);
      const at::Tensor gr = gn * hn * r * (1 - r);
      const at::Tensor gates = Factor(at::cat({gr, gz, gn, gn * r}, 1));
      const at::Tensor* p = &parameters_[4 * layer];
      const at::Tensor rz = gates.narrow(1, 0, 2 * hidden);
      lambda_in.select(0, layer).copy_(
          lambda * (1 - share) + rz.mm(p[1].narrow(0, 0, 2 * hidden)) +
          gates.narrow(1, 3 * hidden, hidden).mm(p[1].narrow(0, 2 * hidden, hidden)));
      if (layer > 0) from_above = gates.narrow(1, 0, 3 * hidden).mm(p[0]);
      if (gate_gradients) gate_gradients->select(0, layer).copy_(gates);
    }
  }

  void AddWeightGradients(const GruInputs& inputs, const std::vector<GruGradientTerm>& terms,
                          at::TensorList gradients) override {
    const c10::NoGradGuard no_grad;
    CheckParameters(gradients);
    if (terms.empty()) return;
    for (std::int64_t layer = 0; layer < config().layers; ++layer) {
      std::vector<at::Tensor> gates, below, states;
      for (const GruGradientTerm& term : terms) {
        gates.push_back(term.gate_gradients->select(0, layer));
        states.push_back(term.state->select(0, layer));
        below.push_back(layer == 0 ? inputs.x.select(1, term.step) : term.new_state->select(0, layer - 1));
      }
      AddLayerGradients(at::cat(gates), Factor(at::cat(below)), Factor(at::cat(states)),
                        &gradients[4 * layer]);
    }
  }

  void AddInputGradient(const at::Tensor& gate_gradients, std::int64_t step,
                        at::Tensor& x_gradient) override {
    const c10::NoGradGuard no_grad;
    x_gradient.select(1, step).add_(
        gate_gradients.select(0, 0).narrow(1, 0, 3 * config().hidden).mm(parameters_[0]));
  }

 private:
  // A factor of a product, rounded to bfloat16 under GruProducts::kBFloat16.
  at::Tensor Factor(const at::Tensor& t) const {
    return config().products == GruProducts::kBFloat16 ? t.to(at::kBFloat16).to(t.dtype()) : t;
  }
  // h' = h + share (n - h)
  at::Tensor Share(GruStepSize size, const at::Tensor& z) const {
    return 1 - at::pow(Kept(size, z), size.repeats);
  }
  at::Tensor ShareSlope(GruStepSize size, const at::Tensor& z) const {
    const at::Tensor kept = Kept(size, z);
    const int power = config().kind == GruKind::kClassic ? size.repeats - 1 : size.repeats + 1;
    return -size.dt * size.repeats * at::pow(kept, power);
  }
  // The share of the old state that one of the repeats keeps.
  at::Tensor Kept(GruStepSize size, const at::Tensor& z) const {
    const at::Tensor part = size.dt * (1 - z);
    return config().kind == GruKind::kClassic ? 1 - part : 1 / (1 + part);
  }
  void AddLayerGradients(const at::Tensor& gates, const at::Tensor& below, const at::Tensor& states,
                         const at::Tensor* to) const {
    const std::int64_t hidden = config().hidden;
    const at::Tensor input_gates = gates.narrow(1, 0, 3 * hidden);
    const at::Tensor hidden_gates =
        at::cat({gates.narrow(1, 0, 2 * hidden), gates.narrow(1, 3 * hidden, hidden)}, 1);
    to[0].add_(input_gates.t().mm(below));
    to[1].add_(hidden_gates.t().mm(states));
    to[2].add_(input_gates.sum(0));
    to[3].add_(hidden_gates.sum(0));
  }

  std::vector<at::Tensor> parameters_;
};

}  // namespace

std::unique_ptr<GruCell> NewOperatorGruCell(const GruConfig& config, const at::TensorOptions& options) {
  return std::make_unique<OperatorGruCell>(config, options);
}

}  // namespace plait::gru
