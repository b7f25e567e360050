#include "models/attention/rotary_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/check.h"
#include "models/attention/head_passes.h"

namespace plait::attention {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor WithNumbersTogether(const at::Tensor& rows) {
  return rows.stride(1) == 1 || rows.is_meta() ? rows : rows.contiguous();
}

at::Tensor Rotated(const at::Tensor& rows, std::int64_t batch, std::int64_t heads,
                   const RotaryTables& tables) {
  const at::Tensor out = at::empty(rows.sizes(), rows.options());
  RotateHeads(rows, batch, heads, tables, /*back=*/false, out);
  return out;
}

class RotaryFunction : public torch::autograd::Function<RotaryFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const AttentionSizes& sizes,
                            const RotaryTables& tables) {
    const std::int64_t seq = query.size(0) / sizes.batch;
    const HeadRows rows = {Rotated(WithNumbersTogether(query), sizes.batch, sizes.heads, tables),
                           Rotated(WithNumbersTogether(key), sizes.batch, sizes.KeyHeads(), tables),
                           WithNumbersTogether(value)};
    const at::Tensor probabilities = at::empty({sizes.batch * sizes.heads, seq, seq}, query.options());
    const at::Tensor out = at::empty(query.sizes(), query.options());
    ForwardHeads(rows, sizes, probabilities, out);
    context->save_for_backward(
        {rows.query, rows.key, rows.value, probabilities, tables.cosines, tables.sines});
    context->saved_data["batch"] = sizes.batch;
    context->saved_data["heads"] = sizes.heads;
    context->saved_data["key_heads"] = sizes.KeyHeads();
    context->saved_data["causal"] = sizes.causal;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "Attention: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const AttentionSizes sizes{.batch = context->saved_data["batch"].toInt(),
                               .heads = context->saved_data["heads"].toInt(),
                               .causal = context->saved_data["causal"].toBool(),
                               .key_heads = context->saved_data["key_heads"].toInt()};
    const RotaryTables tables = {saved[4], saved[5]};
    const auto like = [](const at::Tensor& rows) { return at::empty(rows.sizes(), rows.options()); };
    const HeadRows of = {like(saved[0]), like(saved[1]), like(saved[2])};
    BackwardHeads({saved[0], saved[1], saved[2]}, sizes, saved[3], WithNumbersTogether(gradients[0]), of);
    RotateHeads(of.query, sizes.batch, sizes.heads, tables, /*back=*/true, of.query);
    RotateHeads(of.key, sizes.batch, sizes.key_heads, tables, /*back=*/true, of.key);
    return {of.query, of.key, of.value, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool UsesRotaryAttention(const at::Tensor& query, const AttentionSizes& sizes, const RotaryTables& tables) {
  return query.numel() > 0 && query.size(0) / sizes.batch <= kLongestShortSequence && HasOwnKernels(query) &&
         tables.cosines.scalar_type() == at::kFloat;
}

at::Tensor RotaryAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const AttentionSizes& sizes, const RotaryTables& tables) {
  PLAIT_CHECK(query.dim() == 2 && query.size(0) % sizes.batch == 0 && sizes.heads % sizes.KeyHeads() == 0 &&
              query.size(1) % (2 * sizes.heads) == 0)
      << "queries of shape " << query.sizes() << " for " << sizes.batch << " sequences, " << sizes.heads
      << " heads of an even width and " << sizes.KeyHeads() << " key heads";
  const std::int64_t seq = query.size(0) / sizes.batch, width = query.size(1) / sizes.heads;
  for (const at::Tensor& rows : {key, value}) {
    PLAIT_CHECK(rows.dim() == 2 && rows.size(0) == query.size(0) &&
                rows.size(1) == sizes.KeyHeads() * width && rows.scalar_type() == query.scalar_type())
        << "keys or values of shape " << rows.sizes() << " for queries of shape " << query.sizes();
  }
  for (const at::Tensor& table : {tables.cosines, tables.sines}) {
    PLAIT_CHECK(table.scalar_type() == at::kFloat && table.is_contiguous() && table.numel() >= seq * width)
        << "a rotary table of shape " << table.sizes() << ", expected at least (" << seq << ", " << width
        << ") of float32";
  }
  return RotaryFunction::apply(query, key, value, sizes, tables);
}

}  // namespace plait::attention
