#include "models/llama/block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <torch/nn/module.h>

#include <cmath>
#include <utility>

#include "models/attention/attention.h"
#include "models/attention/rotary_attention.h"
#include "models/key_value_cache.h"
#include "models/rowwise/rowwise.h"
#include "models/stacked/layers.h"

namespace plait::llama {
namespace {

using tensor_parallel::Residual;
using tensor_parallel::Shard;
using tensor_parallel::TensorAxis;

// Output width of wk and wv.
std::int64_t KeyWidth(const LlamaOptions& options) {
  return options.dim / options.n_heads * options.n_kv_heads;
}

// x + dt rows weight^T.
Residual AddProjected(const TensorAxis& axis, const Residual& x, const Shard<1>& rows,
                      const transformer::Linear& linear, double dt) {
  if (dt == 1) return AddRowLinear(axis, x, rows, linear.parameters());
  return Add(x, RowLinear(axis, rows, linear.parameters()), dt);
}

// Selects, from (batch, seq, all key heads, width), the key heads of this rank's query heads, with `group` query heads
// per key head: one for each query head, or a single one if all share it.
at::Tensor KeysOfQueries(const at::Tensor& heads, const TensorAxis& axis, std::int64_t queries,
                         std::int64_t group) {
  const std::int64_t first = axis.rank() * queries, last = first + queries - 1;
  if (first / group == last / group) return heads.narrow(2, first / group, 1);
  return heads.index_select(
      2, at::arange(first, last + 1, heads.options().dtype(at::kLong)).floor_divide_(group));
}

}  // namespace

Rotation::Rotation(const LlamaOptions& options, const at::TensorOptions& tensor_options) {
  const std::int64_t width = options.dim / options.n_heads;
  const at::Tensor pairs = at::arange(width / 2, at::kDouble) * (-2.0 / static_cast<double>(width));
  const at::Tensor angles =
      at::outer(at::arange(options.max_seq_len, at::kDouble), at::pow(options.rope_theta, pairs));
  // Pair (a, b) becomes (a cos - b sin, b cos + a sin).
  const at::Tensor cosine = angles.cos(), sine = angles.sin();
  const auto table = [&](const at::Tensor& even, const at::Tensor& odd) {
    const bool wide = c10::typeMetaToScalarType(tensor_options.dtype()) == at::kDouble;
    const at::Device device =
        tensor_options.device().is_meta() ? at::Device(at::kCPU) : tensor_options.device();
    return at::stack({even, odd}, 2).flatten(1).unsqueeze(1).to(device, wide ? at::kDouble : at::kFloat);
  };
  cosines = table(cosine, cosine);
  sines = table(-sine, sine);
}

at::Tensor Rotation::Apply(const at::Tensor& x, std::int64_t first, const at::Tensor& positions) const {
  // On the meta device positions have no values, so the lookup is done there.
  const at::Device device = positions.defined() && positions.is_meta() ? positions.device() : x.device();
  const auto table = [&](const at::Tensor& all, at::Tensor& copy) {
    if (copy.defined() ? copy.device() != device : all.device() != device) copy = all.to(device);
    const at::Tensor& here = copy.defined() ? copy : all;
    if (!positions.defined()) return here.narrow(0, first, x.size(1));
    return here.index_select(0, positions.to(device)).to(x.device());
  };
  const at::Tensor swapped = x.unflatten(3, {-1, 2}).flip(4).flatten(3);
  const at::Tensor cosine = table(cosines, device_cosines_), sine = table(sines, device_sines_);
  return (x * cosine + swapped * sine).to(x.scalar_type());
}

Block::Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const LlamaOptions& options,
             std::shared_ptr<const Rotation> rotation, const at::TensorOptions& o)
    : module_(std::move(module)),
      layer_(layer),
      options_(options),
      rotation_(std::move(rotation)),
      attention_(transformer::Container(*module_, "attention")),
      wq_(*attention_, "wq", options.dim, options.dim, false, o),
      wk_(*attention_, "wk", options.dim, KeyWidth(options), false, o),
      wv_(*attention_, "wv", options.dim, KeyWidth(options), false, o),
      wo_(*attention_, "wo", options.dim, options.dim, false, o),
      feed_forward_(transformer::Container(*module_, "feed_forward")),
      w1_(*feed_forward_, "w1", options.dim, options.hidden, false, o),
      w2_(*feed_forward_, "w2", options.hidden, options.dim, false, o),
      w3_(*feed_forward_, "w3", options.dim, options.hidden, false, o),
      attention_norm_(*module_, "attention_norm", options.dim, false, options.norm_eps, o,
                      transformer::NormKind::kRms),
      ffn_norm_(*module_, "ffn_norm", options.dim, false, options.norm_eps, o, transformer::NormKind::kRms) {}

models::BlockState Block::Forward(const models::BlockState& input, const models::BlockContext& context) {
  const Residual rows(input.hidden.reshape({-1, options_.dim}));
  const Shard<1> attended = Attention(attention_norm_.Forward(rows), input.hidden.size(0), context);
  const Residual middle = AddProjected(attention_axis_, rows, attended, wo_, context.dt);
  const auto wide =
      ColumnLinear(feed_forward_axis_, ffn_norm_.Forward(middle), {w1_.parameters(), w3_.parameters()});
  const Shard<1> gated = Map(wide[0], wide[1], rowwise::SiluTimes);
  const Residual output = AddProjected(feed_forward_axis_, middle, gated, w2_, context.dt);
  return {output.local().view(input.hidden.sizes()), input.auxiliary_loss};
}

bool Block::CanBeStacked(const models::BlockContext& context) const {
  return attention_axis_.size() == 1 && feed_forward_axis_.size() == 1 && context.cache == nullptr &&
         context.sequence.axis == nullptr;
}

std::vector<at::Tensor> Block::ForwardMany(absl::Span<const models::BlockCall> calls) {
  const auto gathered =
      models::GatherCalls<Block>(calls, [&](const Block& block, const models::BlockContext& context) {
        return block.rotation_ == rotation_ && block.CanBeStacked(context);
      });
  if (!gathered.has_value()) return {};
  const auto weights = [&](const auto& of_block) {
    std::vector<at::Tensor> tensors;
    for (const Block* block : gathered->blocks) tensors.push_back(of_block(*block).weight);
    return stacked::Stacked(tensors);
  };
  const auto linear = [&](const at::Tensor& x, const transformer::Linear Block::*layer) {
    const auto of_block = [layer](const Block& b) -> const transformer::Linear& { return b.*layer; };
    return stacked::Linear(x, weights(of_block), {});
  };
  const auto norm = [&](const at::Tensor& x, const transformer::Norm Block::*layer) {
    const auto of_block = [layer](const Block& b) -> const transformer::Norm& { return b.*layer; };
    return stacked::RmsNorm(x, weights(of_block), options_.norm_eps);
  };
  const at::Tensor x = stacked::Stacked(gathered->hidden);  // (n, batch, seq, dim)
  const std::int64_t batch = x.size(0) * x.size(1), width = options_.dim / options_.n_heads;
  const auto heads = [&](const at::Tensor& product) {
    return product.reshape({batch, x.size(2), -1, width});
  };
  const at::Tensor normed = norm(x, &Block::attention_norm_);
  const at::Tensor attended = Attend(heads(linear(normed, &Block::wq_)), heads(linear(normed, &Block::wk_)),
                                     heads(linear(normed, &Block::wv_)), calls[0].context);
  const at::Tensor middle =
      stacked::AddScaled(x, linear(attended.view(x.sizes()), &Block::wo_), gathered->steps);
  const at::Tensor wide = norm(middle, &Block::ffn_norm_);
  const at::Tensor gated = rowwise::SiluTimes(linear(wide, &Block::w1_), linear(wide, &Block::w3_));
  return stacked::AddScaled(middle, linear(gated, &Block::w2_), gathered->steps).unbind(0);
}

std::vector<at::Tensor> Block::Parameters() const { return module_->parameters(); }

Shard<1> Block::Attention(const Residual& rows, std::int64_t batch,
                          const models::BlockContext& context) const {
  const std::int64_t width = options_.dim / options_.n_heads, group = options_.n_heads / options_.n_kv_heads;
  const auto products =
      ColumnLinear(attention_axis_, rows, {wq_.parameters(), wk_.parameters(), wv_.parameters()});
  const std::int64_t queries = wq_.weight.size(0) / width;
  const bool whole_keys = attention_axis_.split() && wk_.weight.size(0) == options_.n_kv_heads * width;
  const auto heads = [&](const Shard<1>& product) {
    return product.local().view({batch, -1, product.local().size(1) / width, width});
  };
  const auto keys = [&](const Shard<1>& product) {
    return whole_keys ? KeysOfQueries(heads(product), attention_axis_, queries, group) : heads(product);
  };
  return Shard<1>(Attend(heads(products[0]), keys(products[1]), keys(products[2]), context));
}

at::Tensor Block::Attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                         const models::BlockContext& context) const {
  if (context.cache != nullptr && !context.cache->rows().empty()) {
    return models::ByRow(*context.cache, [&](std::int64_t row, models::KeyValueCache* cache) {
      models::BlockContext of_row = context;
      of_row.cache = cache;
      return Attend(queries.narrow(0, row, 1), keys.narrow(0, row, 1), values.narrow(0, row, 1), of_row);
    });
  }
  const bool whole =
      context.sequence.axis == nullptr && !context.sequence.positions.defined() && context.cache == nullptr;
  const attention::AttentionSizes sizes = {
      .batch = queries.size(0), .heads = queries.size(2), .key_heads = keys.size(2)};
  const attention::RotaryTables tables = {rotation_->cosines, rotation_->sines};
  const auto rows = [](const at::Tensor& heads) {
    return heads.reshape({heads.size(0) * heads.size(1), heads.size(2) * heads.size(3)});
  };
  if (whole && attention::UsesRotaryAttention(rows(queries), sizes, tables)) {
    return attention::RotaryAttention(rows(queries), rows(keys), rows(values), sizes, tables);
  }
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length(context.step);
  const at::Tensor query = rotation_->Apply(queries, seen, context.sequence.positions).transpose(1, 2);
  const at::Tensor key = rotation_->Apply(keys, seen, context.sequence.positions).transpose(1, 2);
  const at::Tensor out = attention::Attention(query, key, values.transpose(1, 2),
                                              {.cache = context.cache,
                                               .layer = context.step,
                                               .capacity = options_.max_seq_len,
                                               .sequence = context.sequence});
  return out.transpose(1, 2).reshape({-1, queries.size(2) * queries.size(3)});
}

std::vector<tensor_parallel::SplitGroup> Block::SplitGroups(const std::string& name, int ranks) {
  using tensor_parallel::Split;
  const std::int64_t width = options_.dim / options_.n_heads;
  const bool cuts_keys = options_.n_kv_heads % ranks == 0;
  const std::string attention = name + ".attention", feed_forward = name + ".feed_forward";
  const auto head = [&](const char* layer, Split split, const transformer::Linear& linear, bool cut) {
    return tensor_parallel::SplitLayer{.name = attention + "." + layer,
                                       .split = split,
                                       .weight = linear.weight,
                                       .granularity = width,
                                       .cut = cut};
  };
  return {{.name = attention,
           .layers = {head("wq", Split::kColumns, wq_, true), head("wk", Split::kColumns, wk_, cuts_keys),
                      head("wv", Split::kColumns, wv_, cuts_keys), head("wo", Split::kRows, wo_, true)},
           .equal_parts = true,
           .use = [this](const TensorAxis& axis) { attention_axis_ = axis; }},
          {.name = feed_forward,
           .layers = {{.name = feed_forward + ".w1", .split = Split::kColumns, .weight = w1_.weight},
                      {.name = feed_forward + ".w2", .split = Split::kRows, .weight = w2_.weight},
                      {.name = feed_forward + ".w3", .split = Split::kColumns, .weight = w3_.weight}},
           .use = [this](const TensorAxis& axis) { feed_forward_axis_ = axis; }}};
}

void Block::ResetParameters(const models::ModuleModel& model) const {
  const double out = 0.02 / std::sqrt(2.0 * static_cast<double>(layer_ + 1));
  for (const transformer::Linear* linear : {&wq_, &wk_, &wv_}) linear->Reset(model, 0.02);
  wo_.Reset(model, out);
  w1_.Reset(model, 0.02);
  for (const transformer::Linear* linear : {&w2_, &w3_}) linear->Reset(model, out);
  attention_norm_.Reset();
  ffn_norm_.Reset();
}

}  // namespace plait::llama
