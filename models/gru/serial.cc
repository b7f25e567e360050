#include "models/gru/serial.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <utility>

#include "models/gru/parameters.h"

namespace plait::gru {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Number of steps whose weight gradients are computed in one call.
constexpr std::int64_t kGradientBlock = 2;
// Sweeps kept for reuse: for a training batch, a shorter last batch, and test batches.
constexpr std::size_t kKeptSweeps = 3;

// The memory of one sweep over all steps.
struct Sweep {
  std::int64_t batch = 0;
  std::int64_t steps = 0;
  bool adjoint = false;            // will be differentiated
  std::vector<at::Tensor> states;  // steps + 1; without adjoint 2, used in turn
  std::vector<at::Tensor> saved;   // steps; without adjoint none
  std::vector<at::Tensor> gate_gradients;
  GruInputs inputs;

  at::Tensor& state(std::int64_t point) { return states[point % static_cast<std::int64_t>(states.size())]; }
};

}  // namespace

class SerialSweeps {
 public:
  SerialSweeps(const GruConfig& config, const at::TensorOptions& options)
      : cell_(NewGruCell(config, options)) {}

  GruCell& cell() { return *cell_; }

  std::unique_ptr<Sweep> Take(std::int64_t batch, std::int64_t steps, bool adjoint) {
    const auto fits = [&](const auto& s) {
      return s->batch == batch && s->steps == steps && s->adjoint == adjoint;
    };
    const auto it = std::find_if(free_.begin(), free_.end(), fits);
    if (it == free_.end()) return NewSweep(batch, steps, adjoint);
    std::unique_ptr<Sweep> sweep = std::move(*it);
    free_.erase(it);
    return sweep;
  }
  void Return(std::unique_ptr<Sweep> sweep) {
    sweep->inputs = {};
    free_.push_back(std::move(sweep));
    if (free_.size() > kKeptSweeps) free_.erase(free_.begin());
  }

 private:
  std::unique_ptr<Sweep> NewSweep(std::int64_t batch, std::int64_t steps, bool adjoint) const {
    auto sweep = std::make_unique<Sweep>();
    sweep->batch = batch;
    sweep->steps = steps;
    sweep->adjoint = adjoint;
    for (std::int64_t i = 0; i < (adjoint ? steps + 1 : 2); ++i)
      sweep->states.push_back(cell_->NewState(batch));
    if (!adjoint) return sweep;
    for (std::int64_t i = 0; i < steps; ++i) sweep->saved.push_back(cell_->NewSaved(batch));
    for (std::int64_t i = 0; i < kGradientBlock; ++i)
      sweep->gate_gradients.push_back(cell_->NewGateGradients(batch));
    return sweep;
  }

  std::unique_ptr<GruCell> cell_;
  std::vector<std::unique_ptr<Sweep>> free_;
};

namespace {

// Owned by the autograd node: returns the sweep when the node is destroyed, or after a backward that frees the graph.
class SweepHolder final : public torch::CustomClassHolder {
 public:
  SweepHolder(std::shared_ptr<SerialSweeps> sweeps, std::unique_ptr<Sweep> sweep)
      : sweeps_(std::move(sweeps)), sweep_(std::move(sweep)) {}
  ~SweepHolder() override { Release(); }
  void Release() {
    if (sweep_) sweeps_->Return(std::move(sweep_));
  }
  GruCell& cell() { return sweeps_->cell(); }
  Sweep& sweep() { return *sweep_; }

 private:
  std::shared_ptr<SerialSweeps> sweeps_;
  std::unique_ptr<Sweep> sweep_;
};

struct Call {
  std::shared_ptr<SerialSweeps> sweeps;
  double dt = 1;
  bool adjoint = false;
  GruOutput output = GruOutput::kLastStep;
};

// {state} or {state, output of all steps}
variable_list RunForward(GruCell& cell, const at::Tensor& x, const at::Tensor& initial_state,
                         const Call& call, Sweep& sweep) {
  const bool all = call.output == GruOutput::kAllSteps;
  at::Tensor outputs;
  if (all) outputs = at::empty({sweep.batch, sweep.steps, cell.config().hidden}, cell.options());
  sweep.inputs = cell.PrepareInputs(x);
  sweep.state(0).copy_(initial_state);
  for (std::int64_t step = 0; step < sweep.steps; ++step) {
    at::Tensor& next = sweep.state(step + 1);
    cell.Step(call.dt, sweep.inputs, step, sweep.state(step), next,
              call.adjoint ? &sweep.saved[step] : nullptr);
    if (all) outputs.select(1, step).copy_(next.select(0, cell.config().layers - 1));
  }
  variable_list result = {sweep.state(sweep.steps).clone()};
  if (all) result.push_back(outputs);
  return result;
}

// Propagates `lambda` from the gradient of the last state to that of the first one, in place; accumulates the other
// gradients.
void RunBackward(GruCell& cell, double dt, Sweep& sweep, const at::Tensor& output_gradient,
                 at::Tensor& lambda, at::Tensor& x_gradient, const variable_list& weight_gradients) {
  std::vector<GruGradientTerm> terms;
  at::Tensor top = lambda.select(0, cell.config().layers - 1);
  for (std::int64_t step = sweep.steps - 1; step >= 0; --step) {
    if (output_gradient.defined()) top.add_(output_gradient.select(1, step));
    at::Tensor& gates = sweep.gate_gradients[terms.size()];
    cell.StepAdjoint(dt, sweep.saved[step], sweep.state(step), lambda, lambda, &gates);
    if (x_gradient.defined()) cell.AddInputGradient(gates, step, x_gradient);
    terms.push_back({&gates, &sweep.state(step), &sweep.state(step + 1), step});
    if (step > 0 && terms.size() < sweep.gate_gradients.size()) continue;
    cell.AddWeightGradients(sweep.inputs, terms, weight_gradients);
    terms.clear();
  }
}

struct SerialFunction : torch::autograd::Function<SerialFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& initial_state,
                               at::TensorList parameters, const Call& call) {
    SerialSweeps& sweeps = *call.sweeps;
    sweeps.cell().SetParameters(parameters);
    std::unique_ptr<Sweep> sweep = sweeps.Take(x.size(0), x.size(1), call.adjoint);
    variable_list result = RunForward(sweeps.cell(), x, initial_state, call, *sweep);
    if (!call.adjoint) {
      sweeps.Return(std::move(sweep));
      return result;
    }
    variable_list saved = {x};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["dt"] = call.dt;
    context->saved_data["sweep"] =
        at::IValue::make_capsule(c10::make_intrusive<SweepHolder>(call.sweeps, std::move(sweep)));
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(
        !c10::GradMode::is_enabled(),
        "SerialGru: the backward pass cannot be differentiated again; call backward without create_graph");
    const auto capsule = context->saved_data["sweep"].toCapsule();
    SweepHolder& holder = static_cast<SweepHolder&>(*capsule);
    GruCell& cell = holder.cell();
    const variable_list saved =
        context->get_saved_variables();  // throws if a parameter was changed since forward
    const variable_list parameters(saved.begin() + 1, saved.end());
    cell.SetParameters(parameters);

    variable_list weight_gradients;
    for (const at::Tensor& p : parameters) weight_gradients.push_back(at::zeros(p.sizes(), cell.options()));
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) x_gradient = at::zeros(saved[0].sizes(), cell.options());
    at::Tensor lambda = gradients[0].defined() ? gradients[0].clone(at::MemoryFormat::Contiguous)
                                               : cell.NewState(holder.sweep().batch);
    RunBackward(cell, context->saved_data["dt"].toDouble(), holder.sweep(),
                gradients.size() > 1 ? gradients[1] : at::Tensor(), lambda, x_gradient, weight_gradients);
    if (!torch::autograd::get_current_graph_task_keep_graph()) holder.Release();

    variable_list result = {x_gradient, lambda};
    result.insert(result.end(), weight_gradients.begin(), weight_gradients.end());
    result.emplace_back();  // call
    return result;
  }
};

at::TensorOptions OptionsOf(const torch::nn::Module& module) { return module.parameters().front().options(); }

}  // namespace

SerialGru::SerialGru(const SerialGruOptions& options, const at::TensorOptions& tensor_options)
    : SerialGru(options, NewGruParameters(options.cell, tensor_options)) {}

SerialGru::SerialGru(const SerialGruOptions& options, std::shared_ptr<torch::nn::Module> parameters)
    : options_(options), module_(std::move(parameters)) {}

std::vector<at::Tensor> SerialGru::parameters() const { return module_->parameters(); }

GruResult SerialGru::Forward(const at::Tensor& x, const at::Tensor& initial_state, GruOutput output) {
  const std::vector<at::Tensor> parameters = module_->parameters();
  const at::TensorOptions tensor_options = OptionsOf(*module_);
  // The module may have been moved to another dtype or device.
  if (!sweeps_ || sweeps_->cell().options().dtype() != tensor_options.dtype() ||
      sweeps_->cell().options().device() != tensor_options.device()) {
    sweeps_ = std::make_shared<SerialSweeps>(options_.cell, tensor_options);
  }
  TORCH_CHECK(x.dim() == 3 && x.size(1) > 0, "SerialGru: x must be (batch, steps, input) with steps > 0, is ",
              x.sizes());
  const at::Tensor first = initial_state.defined() ? initial_state : sweeps_->cell().NewState(x.size(0));
  TORCH_CHECK(first.sizes() == at::IntArrayRef({options_.cell.layers, x.size(0), options_.cell.hidden}),
              "SerialGru: initial_state must be (layers, batch, hidden), is ", first.sizes());
  Call call{sweeps_, 1.0, false, output};
  if (options_.final_time) call.dt = *options_.final_time / static_cast<double>(x.size(1));
  call.adjoint =
      c10::GradMode::is_enabled() &&
      (x.requires_grad() || first.requires_grad() ||
       std::any_of(parameters.begin(), parameters.end(), [](const auto& p) { return p.requires_grad(); }));
  const variable_list results = SerialFunction::apply(x, first, at::TensorList(parameters), call);
  const at::Tensor last = results[0].select(0, options_.cell.layers - 1);
  return {output == GruOutput::kAllSteps ? results[1] : last, results[0]};
}

}  // namespace plait::gru
