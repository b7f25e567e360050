#include "models/cross_entropy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/check.h"
#include "models/row_parts.h"
#include "models/rowwise/cross_entropy.h"

namespace plait::models {
namespace {

// With our own kernels.
struct OwnCrossEntropy : torch::autograd::Function<OwnCrossEntropy> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& targets) {
    const at::Tensor dense = logits.contiguous(), columns = targets.contiguous();
    const at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
    const at::Tensor moments = at::empty({2, logits.size(0)}, losses.options());
    rowwise::CrossEntropyRows(dense, columns, losses, moments);
    context->save_for_backward({dense, columns, moments});
    return losses.sum();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "CrossEntropySum: its gradient cannot be differentiated again");
    const auto saved = context->get_saved_variables();
    return {rowwise::CrossEntropyRowsGradient(saved[0], saved[1], saved[2], gradients[0]), at::Tensor()};
  }
};

// With LibTorch's operators.
struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& targets) {
    const at::Tensor columns = targets.unsqueeze(1);
    at::Tensor sum = at::zeros({}, logits.options().dtype(LossType(logits)));
    ForRowParts(logits, LossType(logits), [&](std::int64_t first, std::int64_t rows) {
      const at::Tensor log = at::log_softmax(logits.narrow(0, first, rows), 1, sum.scalar_type());
      sum.sub_(log.gather(1, columns.narrow(0, first, rows)).sum());
    });
    context->save_for_backward({logits, columns});
    return sum;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "CrossEntropySum: its gradient cannot be differentiated again");
    const auto saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &columns = saved[1];
    const at::Tensor& scale = gradients[0];
    const at::Tensor one = at::full({1, 1}, -1, scale.options()).expand_as(columns);
    at::Tensor gradient;
    ForRowParts(logits, LossType(logits), [&](std::int64_t first, std::int64_t rows) {
      at::Tensor part = at::softmax(logits.narrow(0, first, rows), 1, scale.scalar_type());
      part.scatter_add_(1, columns.narrow(0, first, rows), one.narrow(0, first, rows));
      if (part.scalar_type() == logits.scalar_type()) {
        gradient = part.mul_(scale);
        return;
      }
      if (!gradient.defined()) gradient = at::empty(logits.sizes(), logits.options());
      at::Tensor of_part = gradient.narrow(0, first, rows);
      at::mul_out(of_part, part, scale);
    });
    return {gradient, at::Tensor()};
  }
};

}  // namespace

LossSum OverValidRows(const at::Tensor& logits, const at::Tensor& targets, std::int64_t valid,
                      const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& sum) {
  // On the meta device all targets count as valid: the case that takes the most memory.
  const std::int64_t all = targets.size(0);
  const std::int64_t count = targets.is_meta() ? all
                             : valid >= 0      ? valid
                                               : targets.ge(0).sum().item<std::int64_t>();
  if (count == all) return {sum(logits, targets), count};
  const at::Tensor rows = targets.ge(0).nonzero().squeeze(1);
  PLAIT_CHECK(rows.size(0) == count) << rows.size(0) << " valid targets, not " << count;
  return {sum(logits.index_select(0, rows), targets.index_select(0, rows)), count};
}

LossSum CrossEntropySum(const at::Tensor& logits, const at::Tensor& targets, std::int64_t valid) {
  PLAIT_CHECK(logits.dim() == 2 && targets.dim() == 1 && logits.size(0) == targets.size(0) &&
              targets.scalar_type() == at::kLong)
      << "logits of shape " << logits.sizes() << ", targets of shape " << targets.sizes()
      << "; expected (rows, classes) and (rows) of int64";
  return OverValidRows(logits, targets, valid, [](const at::Tensor& l, const at::Tensor& t) {
    return rowwise::HasCrossEntropyRows(l) ? OwnCrossEntropy::apply(l, t) : CrossEntropyFunction::apply(l, t);
  });
}

}  // namespace plait::models
