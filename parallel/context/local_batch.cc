#include "parallel/context/local_batch.h"

#include <ATen/ops/constant_pad_nd.h>

#include "base/check.h"

namespace plait::context_parallel {
namespace {

at::Tensor Part(const at::Tensor& tokens, std::int64_t padded, std::int64_t padding,
                const at::Tensor& positions) {
  const at::Tensor whole = at::constant_pad_nd(tokens, {0, padded - tokens.size(1)}, padding);
  return whole.index_select(1, positions.to(tokens.device()));
}

}  // namespace

models::Batch LocalBatch(const ContextAxis& axis, const models::Batch& batch, std::int64_t sequence) {
  if (!axis.split()) return batch;
  const bool tokens = sequence == 0;
  PLAIT_CHECK(!tokens || batch.inputs.dim() == 2)
      << "inputs of shape " << batch.inputs.sizes() << ", expected (batch, seq)";
  const std::int64_t length = tokens ? batch.inputs.size(1) : sequence, padded = axis.PaddedLength(length);
  models::Batch local = batch;
  const at::Tensor positions = axis.Positions(padded);
  // Clamped: tables of positional embeddings may end at `length`.
  local.sequence = {.positions = positions.clamp_max(length - 1), .length = length, .axis = &axis};
  if (!tokens) return local;
  local.inputs = Part(batch.inputs, padded, 0, positions);
  if (batch.targets.defined()) local.targets = Part(batch.targets, padded, -1, positions);
  local.valid_targets = -1;
  return local;
}

}  // namespace plait::context_parallel
