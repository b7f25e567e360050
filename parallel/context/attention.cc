#include "parallel/context/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "base/check.h"
#include "comm/tensor_collectives.h"
#include "parallel/context/attention_part.h"
#include "parallel/context/fused_attention.h"
#include "parallel/context/ring_attention.h"
#include "parallel/tensor/recorded_value.h"

namespace plait::context_parallel {
namespace {

using tensor_parallel::Record, tensor_parallel::Recorded;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor Exchanged(const comm::Communicator& comm, const at::Tensor& parts) {
  const at::Tensor in = parts.contiguous();
  at::Tensor out = at::empty_like(in);
  comm::AllToAll(comm, in, out);
  return out;
}

// Sends part r of dimension 0 to rank r. The transpose is the same operation.
struct AllToAllFunction : torch::autograd::Function<AllToAllFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& parts,
                            const comm::Communicator& comm) {
    Record(*context, comm);
    return Exchanged(comm, parts);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    CheckOnce();
    return {Exchanged(Recorded<comm::Communicator>(*context), gradients[0]), at::Tensor()};
  }
};

// (batch, heads, seq / N, width) -> (batch, heads / N, seq, width).
at::Tensor ToHeads(const ContextAxis& axis, const at::Tensor& x) {
  const std::int64_t n = axis.size();
  const at::Tensor parts = x.unflatten(1, {n, -1}).movedim(1, 0);
  return AllToAllFunction::apply(parts, axis.comm()).movedim(0, 2).flatten(2, 3);
}

// The inverse of ToHeads.
at::Tensor ToTokens(const ContextAxis& axis, const at::Tensor& x) {
  const std::int64_t n = axis.size();
  const at::Tensor parts = x.unflatten(2, {n, -1}).movedim(2, 0);
  return AllToAllFunction::apply(parts, axis.comm()).movedim(0, 1).flatten(1, 2);
}

// Attention over whole sequences with dropout, as a single part.
struct DroppingFunction : torch::autograd::Function<DroppingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& keys,
                            const at::Tensor& values, const AttentionOptions& options) {
    const PartOutput part = AttendToPart(Whole(query, keys, values, options));
    context->save_for_backward({query, keys, values, part.out, part.log_sum});
    Record(*context, options);
    return part.out.to(query.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    CheckOnce();
    const auto& options = Recorded<AttentionOptions>(*context);
    const variable_list saved = context->get_saved_variables();
    const PartGradients part =
        GradientsOfPart(Whole(saved[0], saved[1], saved[2], options), gradients[0], {saved[3], saved[4]});
    const at::ScalarType type = saved[0].scalar_type();
    return {part.queries.to(type), part.keys.to(type), part.values.to(type), {}};
  }

 private:
  static PartInput Whole(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                         const AttentionOptions& options) {
    const auto positions = [](const at::Tensor& x) {
      return at::arange(x.size(2), at::TensorOptions(at::kLong).device(x.device()));
    };
    return {.queries = query,
            .keys = keys,
            .values = values,
            .causal = options.causal,
            .query_positions = positions(query),
            .key_positions = positions(keys),
            .length = options.length,
            .dropout = options.dropout};
  }
};

// Attention over whole sequences, of which the first `options.length` tokens are keys.
at::Tensor WholeAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const AttentionOptions& options) {
  // Under a causal mask no token attends to padding, which comes after all of them.
  const std::int64_t heads = query.size(1), length = options.causal ? key.size(2) : options.length;
  const auto keys_of = [&](const at::Tensor& x) { return PerQueryHead(x.narrow(2, 0, length), heads); };
  const at::Tensor keys = keys_of(key), values = keys_of(value);
  if (options.dropout.has_value()) return DroppingFunction::apply(query, keys, values, options);
  return FusedAttention(query, keys, values, std::nullopt, options.causal);
}

at::Tensor UlyssesAttention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const AttentionOptions& options) {
  const std::int64_t n = axis.size(), heads = query.size(1);
  PLAIT_CHECK(heads % n == 0) << heads << " heads for " << n
                              << " ranks; Ulysses needs a multiple of the ranks";
  const bool whole_heads = key.size(1) % n == 0;
  const at::Tensor keys = whole_heads ? key : PerQueryHead(key, heads);
  const at::Tensor values = whole_heads ? value : PerQueryHead(value, heads);
  AttentionOptions of_heads = options;
  if (of_heads.dropout.has_value()) of_heads.dropout->first_head += axis.rank() * (heads / n);
  return ToTokens(axis,
                  WholeAttention(ToHeads(axis, query), ToHeads(axis, keys), ToHeads(axis, values), of_heads));
}

}  // namespace

at::Tensor Attention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const AttentionOptions& options) {
  PLAIT_CHECK(query.dim() == 4 && key.dim() == 4 && key.sizes() == value.sizes() &&
              query.size(2) == key.size(2) && query.size(3) == key.size(3) &&
              query.size(1) % key.size(1) == 0)
      << "query of shape " << query.sizes() << ", key " << key.sizes() << ", value " << value.sizes()
      << "; expected (batch, heads, seq, width), and a divisor of the heads for keys and values";
  AttentionOptions whole = options;
  const std::int64_t padded = query.size(2) * axis.size();
  if (whole.length == 0) whole.length = padded;
  PLAIT_CHECK(whole.length <= padded)
      << "a sequence of " << whole.length << " tokens, of which ranks have " << padded;
  if (!axis.split()) return WholeAttention(query, key, value, whole);
  if (axis.kind() == ContextKind::kUlysses) return UlyssesAttention(axis, query, key, value, whole);
  PLAIT_CHECK(query.size(2) % 2 == 0)
      << query.size(2) << " tokens per rank; ring attention needs an even number";
  return RingAttention(axis, query, key, value, whole);
}

}  // namespace plait::context_parallel
