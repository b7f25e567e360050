#include "parallel/tensor/vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/check.h"
#include "comm/tensor_collectives.h"
#include "models/cross_entropy.h"
#include "models/row_parts.h"
#include "parallel/tensor/recorded_value.h"

namespace plait::tensor_parallel {
namespace {

using models::ForRowParts;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Which tokens are in this rank's part of the vocabulary.
struct Local {
  Local(const TensorAxis& axis, std::int64_t vocabulary, const at::Tensor& tokens) {
    // Otherwise an invalid token would look like one of another rank.
    if (tokens.is_cpu() && tokens.numel() > 0) {
      TORCH_CHECK(tokens.max().item<std::int64_t>() < vocabulary && tokens.min().item<std::int64_t>() >= 0,
                  "a token outside 0 to ", vocabulary - 1);
    }
    const Range part = axis.PartOf(vocabulary);
    here = tokens.ge(part.begin).logical_and_(tokens.lt(part.end));
    index = (tokens - part.begin).mul_(here);
  }
  at::Tensor here;   // whether
  at::Tensor index;  // where; 0 for others
};

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets,
                            const TensorAxis& axis, std::int64_t vocabulary) {
    const at::ScalarType type = models::LossType(logits);
    const Local local(axis, vocabulary, targets);
    at::Tensor largest = logits.amax(1).to(type);
    comm::AllReduce(axis.comm(), largest, comm::ReduceOp::kMax);
    // Of each row: the sum of exponentials and, on the rank that has it, the target's logit.
    at::Tensor sums = at::empty({2, logits.size(0)}, largest.options());
    ForRowParts(logits, type, [&](std::int64_t first, std::int64_t rows) {
      const at::Tensor part =
          logits.narrow(0, first, rows).to(type) - largest.narrow(0, first, rows).unsqueeze(1);
      sums[1]
          .narrow(0, first, rows)
          .copy_(part.gather(1, local.index.narrow(0, first, rows).unsqueeze(1)).squeeze(1));
      sums[0].narrow(0, first, rows).copy_(part.exp().sum(1));
    });
    sums[1].masked_fill_(local.here.logical_not(), 0);  // 0 times -inf would be NaN
    comm::AllReduce(axis.comm(), sums);
    const at::Tensor log_sum = sums[0].log();
    context->save_for_backward({logits, local.index, local.here, largest + log_sum});
    return (log_sum - sums[1]).sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "CrossEntropySum: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &log_sum = saved[3], &scale = gradients[0];
    const at::Tensor index = saved[1].unsqueeze(1),
                     minus_one = saved[2].to(log_sum.scalar_type()).neg_().unsqueeze(1);
    at::Tensor gradient = at::empty_like(logits);
    ForRowParts(logits, log_sum.scalar_type(), [&](std::int64_t first, std::int64_t rows) {
      at::Tensor part = (logits.narrow(0, first, rows).to(log_sum.scalar_type()) -
                         log_sum.narrow(0, first, rows).unsqueeze(1))
                            .exp_();
      part.scatter_add_(1, index.narrow(0, first, rows), minus_one.narrow(0, first, rows));
      at::Tensor of_part = gradient.narrow(0, first, rows);
      at::mul_out(of_part, part, scale);
    });
    return {gradient, {}, {}, {}};
  }
};

}  // namespace

Partial Embedding(const TensorAxis& axis, const at::Tensor& table, std::int64_t vocabulary,
                  const at::Tensor& tokens) {
  const at::Tensor flat = tokens.reshape({-1});
  if (!axis.split()) return Partial(at::embedding(table, flat));
  PLAIT_CHECK(table.size(0) == axis.PartOf(vocabulary).size())
      << "a table of " << table.size(0) << " rows is not this rank's part of " << vocabulary;
  const Local local(axis, vocabulary, flat);
  return Partial(at::embedding(table, local.index).masked_fill(local.here.logical_not().unsqueeze(1), 0));
}

models::LossSum CrossEntropySum(const TensorAxis& axis, const Shard<1>& logits, std::int64_t vocabulary,
                                const at::Tensor& targets, std::int64_t valid) {
  if (!axis.split()) return models::CrossEntropySum(logits.local(), targets, valid);
  PLAIT_CHECK(logits.local().dim() == 2 && logits.local().size(1) == axis.PartOf(vocabulary).size() &&
              targets.sizes() == logits.local().sizes().slice(0, 1) && targets.scalar_type() == at::kLong)
      << "logits of shape " << logits.local().sizes() << ", targets of shape " << targets.sizes()
      << "; expected (rows, this rank's part of " << vocabulary << ") and (rows) of int64";
  return models::OverValidRows(logits.local(), targets, valid, [&](const at::Tensor& l, const at::Tensor& t) {
    return CrossEntropyFunction::apply(l, t, axis, vocabulary);
  });
}

}  // namespace plait::tensor_parallel
