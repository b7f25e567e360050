#include "models/attention/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "models/key_value_cache.h"
#include "parallel/context/attention.h"
#include "parallel/context/fused_attention.h"

namespace plait::attention {
namespace {

// Query i, at position seen + i, attends to keys 0 to seen + i.
at::Tensor CausalMask(std::int64_t queries, std::int64_t seen, at::Device device) {
  return at::ones({queries, seen + queries}, at::TensorOptions(at::kBool).device(device)).tril(seen);
}

// softmax(q k^T / sqrt(width)); the causal mask is aligned to the last query and the last key.
at::Tensor Probabilities(const at::Tensor& query, const at::Tensor& keys, bool causal) {
  const std::int64_t queries = query.size(2), seen = keys.size(2) - queries;
  const at::Tensor scores =
      at::matmul(query * (1 / std::sqrt(static_cast<double>(query.size(3)))), keys.transpose(2, 3));
  if (!causal) return at::softmax(scores, -1);
  const at::Tensor later = CausalMask(queries, seen, query.device()).logical_not_();
  return at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
}

}  // namespace

at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options) {
  if (options.sequence.axis != nullptr) {
    PLAIT_CHECK(options.cache == nullptr) << "context parallelism does not support a key-value cache";
    return context_parallel::Attention(
        *options.sequence.axis, query, key, value,
        {.causal = options.causal, .length = options.sequence.length, .dropout = options.dropout});
  }
  at::Tensor keys = key, values = value;
  std::optional<at::Tensor> mask;
  bool causal = options.causal;
  if (options.cache != nullptr) {
    std::tie(keys, values) = options.cache->Append(options.layer, key, value, options.capacity);
    const std::int64_t seq = query.size(2), seen = keys.size(2) - seq;
    // LibTorch's is_causal mask is aligned to the first query and the first key.
    causal = options.causal && seen == 0;
    if (options.causal && seen > 0 && seq > 1) mask = CausalMask(seq, seen, query.device());
  }
  keys = context_parallel::PerQueryHead(keys, query.size(1));
  values = context_parallel::PerQueryHead(values, query.size(1));
  if (!options.dropout && !options.keeps_probabilities) {
    return context_parallel::FusedAttention(query, keys, values, mask, causal);
  }
  at::Tensor probabilities = Probabilities(query, keys, options.causal);
  if (options.dropout) {
    const at::Tensor queries = at::arange(query.size(2), at::TensorOptions(at::kLong).device(query.device()));
    probabilities = dropout::DropProbabilities(probabilities, *options.dropout, queries, {}, query.size(2));
  }
  return at::matmul(probabilities, values);
}

}  // namespace plait::attention
