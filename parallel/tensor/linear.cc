#include "parallel/tensor/linear.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "comm/tensor_collectives.h"
#include "models/linear/linear.h"
#include "parallel/tensor/recorded_value.h"

namespace plait::tensor_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The sum of `product`, whose memory may be reused, over the ranks: all rows, or with sequence parallelism this rank's.
class RowSum {
 public:
  RowSum(const TensorAxis& axis, const at::Tensor& product) : sum_(product.contiguous()) {
    if (!axis.sequence_parallel()) {
      work_ = comm::AllReduceAsync(axis.comm(), sum_);
      return;
    }
    PLAIT_CHECK(sum_.size(0) % axis.size() == 0)
        << sum_.size(0) << " rows for " << axis.size() << " ranks; sequence parallelism needs equal parts";
    const at::Tensor whole =
        std::exchange(sum_, at::empty({product.size(0) / axis.size(), product.size(1)}, product.options()));
    work_ = comm::ReduceScatterAsync(axis.comm(), whole, sum_);
  }
  at::Tensor Wait() {
    work_.Wait();
    return sum_;
  }

 private:
  at::Tensor sum_;
  comm::TensorWork work_;
};

at::Tensor AllRows(const TensorAxis& axis, const at::Tensor& x) {
  return axis.sequence_parallel() ? comm::AllGather(axis.comm(), x.contiguous()) : x;
}

struct ColumnCall {
  TensorAxis axis;
  std::vector<bool> has_bias;  // of each layer
};

// Inputs: x, then of each layer its weight and its bias, if it has one.
struct ColumnFunction : torch::autograd::Function<ColumnFunction> {
  static variable_list forward(AutogradContext* context, const ColumnCall& call, const at::Tensor& x,
                               at::TensorList parameters) {
    const at::Tensor rows = AllRows(call.axis, x);
    variable_list outputs, saved = {rows};
    std::size_t next = 0;
    for (const bool has_bias : call.has_bias) {
      const at::Tensor& weight = parameters[next++];
      outputs.push_back(linear::Linear(rows, weight, has_bias ? parameters[next++] : at::Tensor()));
      saved.push_back(weight);
    }
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    Record(*context, call);
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "ColumnLinear: its gradient cannot be differentiated again");
    const ColumnCall& call = Recorded<ColumnCall>(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& rows = saved[0];
    // A backward in two parts needs the gradient of x first, those of the weights later.
    const bool wants_x = context->needs_input_grad(0);
    at::Tensor of_rows;
    for (std::size_t layer = 0; wants_x && layer < gradients.size(); ++layer) {
      if (gradients[layer].defined()) of_rows = linear::Product(gradients[layer], saved[layer + 1], of_rows);
    }
    // All ranks reach this collective: the outputs of a layer are used by all ranks or by none.
    std::optional<RowSum> of_x;
    if (wants_x) of_x.emplace(call.axis, of_rows);
    variable_list of_inputs = {at::Tensor(), at::Tensor()};
    std::size_t parameter = 1;
    for (std::size_t layer = 0; layer < gradients.size(); ++layer) {
      const at::Tensor& gradient = gradients[layer];
      const bool wants_weight = context->needs_input_grad(parameter++) && gradient.defined();
      of_inputs.push_back(wants_weight ? linear::Product(gradient.t(), rows) : at::Tensor());
      if (!call.has_bias[layer]) continue;
      const bool wants_bias = context->needs_input_grad(parameter++) && gradient.defined();
      of_inputs.push_back(wants_bias ? gradient.sum(0) : at::Tensor());
    }
    if (wants_x) of_inputs[1] = of_x->Wait();
    return of_inputs;
  }
};

struct RowCall {
  TensorAxis axis;
  bool has_bias = false, has_residual = false;
};

// Inputs: x, weight, then bias and residual, if there are any.
struct RowFunction : torch::autograd::Function<RowFunction> {
  static at::Tensor forward(AutogradContext* context, const RowCall& call, const at::Tensor& x,
                            const at::Tensor& weight, at::TensorList addends) {
    context->save_for_backward({x, weight});
    Record(*context, call);
    at::Tensor y = RowSum(call.axis, linear::Product(x, weight.t())).Wait();
    for (const at::Tensor& addend : addends) y.add_(addend);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "RowLinear: its gradient cannot be differentiated again");
    const RowCall& call = Recorded<RowCall>(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const bool wants_x = context->needs_input_grad(0), wants_weight = context->needs_input_grad(1);
    const at::Tensor whole = wants_x || wants_weight ? AllRows(call.axis, gradients[0]) : at::Tensor();
    variable_list of_inputs = {at::Tensor(), wants_x ? linear::Product(whole, weight) : at::Tensor(),
                               wants_weight ? linear::Product(whole.t(), x) : at::Tensor()};
    if (call.has_bias) of_inputs.push_back(gradients[0].sum(0));
    if (call.has_residual) of_inputs.push_back(gradients[0]);
    return of_inputs;
  }
};

}  // namespace

std::vector<Shard<1>> ColumnLinear(const TensorAxis& axis, const Residual& x,
                                   const std::vector<LinearParameters>& layers) {
  std::vector<Shard<1>> outputs;
  if (!axis.split()) {
    for (const LinearParameters& layer : layers) {
      outputs.emplace_back(linear::Linear(x.local(), layer.weight, layer.bias));
    }
    return outputs;
  }
  ColumnCall call = {axis, {}};
  variable_list parameters;
  for (const LinearParameters& layer : layers) {
    call.has_bias.push_back(layer.bias.defined());
    parameters.push_back(layer.weight);
    if (layer.bias.defined()) parameters.push_back(layer.bias);
  }
  for (at::Tensor& y : ColumnFunction::apply(call, x.local(), at::TensorList(parameters))) {
    outputs.emplace_back(std::move(y));
  }
  return outputs;
}

Residual RowLinear(const TensorAxis& axis, const Shard<1>& x, const LinearParameters& layer) {
  if (!axis.split()) return Residual(linear::Linear(x.local(), layer.weight, layer.bias));
  variable_list addends;
  if (layer.bias.defined()) addends.push_back(layer.bias);
  return Residual(RowFunction::apply(RowCall{axis, layer.bias.defined(), false}, x.local(), layer.weight,
                                     at::TensorList(addends)));
}

Residual AddRowLinear(const TensorAxis& axis, const Residual& residual, const Shard<1>& x,
                      const LinearParameters& layer) {
  if (!axis.split()) {
    return Residual(linear::AddLinear(residual.local(), x.local(), layer.weight, layer.bias));
  }
  variable_list addends;
  if (layer.bias.defined()) addends.push_back(layer.bias);
  addends.push_back(residual.local());
  return Residual(RowFunction::apply(RowCall{axis, layer.bias.defined(), true}, x.local(), layer.weight,
                                     at::TensorList(addends)));
}

}  // namespace plait::tensor_parallel
