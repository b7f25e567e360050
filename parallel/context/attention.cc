#include "parallel/context/attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "base/check.h"
#include "comm/tensor_collectives.h"
#include "parallel/context/fused_attention.h"
#include "parallel/context/ring_attention.h"

namespace plait::context_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CommHolder final : torch::CustomClassHolder {
  explicit CommHolder(const comm::Communicator& c) : comm(c) {}
  comm::Communicator comm;
};

at::Tensor Exchanged(const comm::Communicator& comm, const at::Tensor& parts) {
  const at::Tensor in = parts.contiguous();
  at::Tensor out = at::empty_like(in);
  comm::AllToAll(comm, in, out);
  return out;
}

// Part r of dimension 0 goes to rank r. Its own transpose.
struct AllToAllFunction : torch::autograd::Function<AllToAllFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& parts,
                            const comm::Communicator& comm) {
    context->saved_data["comm"] = c10::IValue::make_capsule(c10::make_intrusive<CommHolder>(comm));
    return Exchanged(comm, parts);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& holder = static_cast<CommHolder&>(*context->saved_data["comm"].toCapsule());
    return {Exchanged(holder.comm, gradients[0]), at::Tensor()};
  }
};

// (batch, heads, seq / N, width) -> (batch, heads / N, seq, width).
at::Tensor ToHeads(const ContextAxis& axis, const at::Tensor& x) {
  const std::int64_t n = axis.size();
  const at::Tensor parts = x.unflatten(1, {n, -1}).movedim(1, 0);
  return AllToAllFunction::apply(parts, axis.comm()).movedim(0, 2).flatten(2, 3);
}

// And back.
at::Tensor ToTokens(const ContextAxis& axis, const at::Tensor& x) {
  const std::int64_t n = axis.size();
  const at::Tensor parts = x.unflatten(2, {n, -1}).movedim(2, 0);
  return AllToAllFunction::apply(parts, axis.comm()).movedim(0, 1).flatten(1, 2);
}

at::Tensor PerQueryHead(const at::Tensor& heads, std::int64_t count) {
  return heads.size(1) == count ? heads : heads.repeat_interleave(count / heads.size(1), 1);
}

// LibTorch's operator on whole sequences, of which `length` tokens are keys.
at::Tensor WholeAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          bool causal, std::int64_t length) {
  const std::int64_t heads = query.size(1);
  const at::Tensor keys = PerQueryHead(key, heads), values = PerQueryHead(value, heads);
  // Under a causal mask no token looks at padding, which is behind all of them.
  std::optional<at::Tensor> mask;
  if (!causal && length < key.size(2)) {
    mask = at::arange(key.size(2), at::TensorOptions(at::kLong).device(key.device()))
               .lt(length)
               .expand({query.size(2), -1});
  }
  return FusedAttention(query, keys, values, mask, causal);
}

at::Tensor UlyssesAttention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const AttentionOptions& options) {
  const std::int64_t n = axis.size(), heads = query.size(1);
  PLAIT_CHECK(heads % n == 0) << heads << " heads for " << n
                              << " ranks; Ulysses needs a multiple of the ranks";
  const bool whole_heads = key.size(1) % n == 0;
  const at::Tensor keys = whole_heads ? key : PerQueryHead(key, heads);
  const at::Tensor values = whole_heads ? value : PerQueryHead(value, heads);
  return ToTokens(axis, WholeAttention(ToHeads(axis, query), ToHeads(axis, keys), ToHeads(axis, values),
                                       options.causal, options.length));
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
  if (!axis.split()) return WholeAttention(query, key, value, whole.causal, whole.length);
  if (axis.kind() == ContextKind::kUlysses) return UlyssesAttention(axis, query, key, value, whole);
  PLAIT_CHECK(query.size(2) % 2 == 0) << query.size(2) << " tokens are no two chunks";
  return RingAttention(axis, query, key, value, whole);
}

}  // namespace plait::context_parallel
