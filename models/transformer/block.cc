#include "models/transformer/block.h"

#include <ATen/TensorOperators.h>
#include <torch/nn/module.h>

#include <optional>
#include <utility>

#include "models/attention/attention.h"
#include "models/attention/short_attention.h"
#include "models/key_value_cache.h"
#include "models/stacked/layers.h"
#include "parallel/dropout/dropout.h"

namespace plait::transformer {

using tensor_parallel::Residual;
using tensor_parallel::Shard;
using tensor_parallel::TensorAxis;

Block::Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const BlockOptions& options,
             const BlockNames& names, const at::TensorOptions& tensor_options)
    : layer_(layer),
      options_(options),
      names_(names),
      module_(std::move(module)),
      norm_1_(*module_, names.norm_1, options.width, options.bias, options.norm_eps, tensor_options),
      attention_(Container(*module_, names.attention)),
      qkv_(*attention_, names.qkv, options.width, 3 * options.heads * options.head_width, options.qkv_bias,
           tensor_options),
      attention_out_(*attention_, names.attention_out, options.heads * options.head_width, options.width,
                     options.bias, tensor_options),
      norm_2_(*module_, names.norm_2, options.width, options.bias, options.norm_eps, tensor_options) {
  if (options.moe.used()) {
    moe_ =
        std::make_unique<moe::MoeMlp>(*module_, names.mlp, layer, options.width, options.moe, tensor_options);
    return;
  }
  mlp_ = Container(*module_, names.mlp);
  mlp_in_.emplace(*mlp_, names.mlp_in, options.width, options.hidden, options.bias, tensor_options);
  mlp_out_.emplace(*mlp_, names.mlp_out, options.hidden, options.width, options.bias, tensor_options);
}

bool Block::dropping() const { return options_.dropout > 0 && module_->is_training(); }

models::BlockState Block::Forward(const models::BlockState& input, const models::BlockContext& context) {
  const Residual rows(input.hidden.reshape({-1, options_.width}));
  const std::int64_t batch = input.hidden.size(0);
  const Shard<1> attended = Attention(norm_1_.Forward(rows), batch, context);
  const Residual middle = AddProjected(attention_axis_, rows, attended, attention_out_, context, batch);
  if (moe_ != nullptr) {
    const moe::MoeMlp::Output mixed = moe_->Forward(norm_2_.Forward(middle), {batch, context});
    const Residual output = AddDropped(attention_axis_, middle, mixed.added, "mlp", context, batch);
    return {output.local().view(input.hidden.sizes()),
            input.auxiliary_loss.defined() ? input.auxiliary_loss + mixed.loss : mixed.loss};
  }
  const Shard<1> wide = Map(ColumnLinear(mlp_axis_, norm_2_.Forward(middle), {mlp_in_->parameters()})[0],
                            [this](const at::Tensor& x) { return rowwise::Gelu(x, options_.gelu); });
  const Residual output = AddProjected(mlp_axis_, middle, wide, *mlp_out_, context, batch);
  return {output.local().view(input.hidden.sizes()), input.auxiliary_loss};
}

bool Block::CanBeStackedWith(const Block& other, const models::BlockContext& context) const {
  const auto plain = [](const Block& block) {
    return block.moe_ == nullptr && !block.dropping() && block.attention_axis_.size() == 1 &&
           block.mlp_axis_.size() == 1;
  };
  return plain(*this) && plain(other) && context.cache == nullptr && context.sequence.axis == nullptr &&
         other.qkv_.weight.sizes() == qkv_.weight.sizes() &&
         other.mlp_in_->weight.sizes() == mlp_in_->weight.sizes() && other.options_.heads == options_.heads &&
         other.options_.causal == options_.causal && other.options_.gelu == options_.gelu;
}

std::vector<at::Tensor> Block::ForwardMany(absl::Span<const models::BlockCall> calls) {
  const auto gathered =
      models::GatherCalls<Block>(calls, [&](const Block& block, const models::BlockContext& context) {
        return CanBeStackedWith(block, context);
      });
  if (!gathered.has_value()) return {};
  const auto stack = [&](const auto& of_block) {
    std::vector<at::Tensor> tensors;
    for (const Block* block : gathered->blocks) tensors.push_back(of_block(*block));
    return stacked::Stacked(tensors);
  };
  const auto linear = [&](const at::Tensor& x, const auto& of_block) {
    return stacked::Linear(x, stack([&](const Block& b) { return of_block(b).weight; }),
                           stack([&](const Block& b) { return of_block(b).bias; }));
  };
  const auto norm = [&](const at::Tensor& x, const auto& of_block) {
    return stacked::LayerNorm(x, stack([&](const Block& b) { return of_block(b).weight; }),
                              stack([&](const Block& b) { return of_block(b).bias; }), of_block(*this).eps);
  };
  const at::Tensor x = stacked::Stacked(gathered->hidden);
  const auto count = static_cast<std::int64_t>(calls.size());
  const at::Tensor rows = x.reshape({count, -1, options_.width});
  const at::Tensor product = linear(norm(rows, [](const Block& b) -> const Norm& { return b.norm_1_; }),
                                    [](const Block& b) -> const Linear& { return b.qkv_; });
  const at::Tensor attended = Attend(product.flatten(0, 1), count * calls[0].hidden.size(0), calls[0].context)
                                  .unflatten(0, {count, -1});
  const at::Tensor middle = stacked::AddScaled(
      rows, linear(attended, [](const Block& b) -> const Linear& { return b.attention_out_; }),
      gathered->steps);
  const at::Tensor wide = linear(norm(middle, [](const Block& b) -> const Norm& { return b.norm_2_; }),
                                 [](const Block& b) -> const Linear& { return *b.mlp_in_; });
  const at::Tensor out = stacked::AddScaled(
      middle,
      linear(rowwise::Gelu(wide, options_.gelu), [](const Block& b) -> const Linear& { return *b.mlp_out_; }),
      gathered->steps);
  return out.view(x.sizes()).unbind(0);
}

std::vector<at::Tensor> Block::Parameters() const { return module_->parameters(); }

// Queries, keys and values are views of one product, and their gradients are written side by side.
Shard<1> Block::Attention(const Residual& rows, std::int64_t batch,
                          const models::BlockContext& context) const {
  return Map(ColumnLinear(attention_axis_, rows, {qkv_.parameters()})[0],
             [&](const at::Tensor& product) { return Attend(product, batch, context); });
}

at::Tensor Block::Attend(const at::Tensor& product, std::int64_t batch,
                         const models::BlockContext& context) const {
  if (context.cache != nullptr && !context.cache->rows().empty()) {
    return models::ByRow(*context.cache, [&](std::int64_t row, models::KeyValueCache* cache) {
      models::BlockContext of_row = context;
      of_row.cache = cache;
      return Attend(product.narrow(0, row, 1), 1, of_row);
    });
  }
  const std::int64_t heads = options_.heads / attention_axis_.size(), width = options_.head_width;
  const attention::AttentionSizes sizes{.batch = batch, .heads = heads, .causal = options_.causal};
  const bool whole = context.sequence.axis == nullptr && context.cache == nullptr;
  if (whole && !dropping() && !options_.keeps_probabilities && batch > 0 &&
      attention::UsesShortAttention(product, sizes)) {
    return attention::ShortAttention(product, sizes);
  }
  // Of no sequences the product does not tell how long they are; parts of longer ones must agree on it.
  const std::int64_t seq_of_none =
      context.sequence.positions.defined() ? context.sequence.positions.size(0) : 1;
  const std::int64_t seq = batch == 0 ? seq_of_none : product.size(0) / batch;
  const std::vector<at::Tensor> parts = product.view({batch, seq, 3, heads, width}).unbind(2);
  std::optional<dropout::ProbabilityDropout> drop;
  if (dropping()) drop = ProbabilityDropoutOf(context.random);
  const at::Tensor out =
      attention::Attention(parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2),
                           {.causal = options_.causal,
                            .keeps_probabilities = options_.keeps_probabilities,
                            .dropout = drop,
                            .cache = context.cache,
                            .layer = context.step,
                            .capacity = options_.capacity,
                            .sequence = context.sequence});
  return out.transpose(1, 2).reshape({-1, heads * width});
}

Residual Block::AddProjected(const TensorAxis& axis, const Residual& residual, const Shard<1>& rows,
                             const Linear& projection, const models::BlockContext& context,
                             std::int64_t batch) const {
  if (context.dt == 1 && !dropping()) return AddRowLinear(axis, residual, rows, projection.parameters());
  const char* site = &projection == &attention_out_ ? "attention" : "mlp";
  return AddDropped(axis, residual, RowLinear(axis, rows, projection.parameters()), site, context, batch);
}

Residual Block::AddDropped(const TensorAxis& axis, const Residual& residual, Residual added, const char* site,
                           const models::BlockContext& context, std::int64_t batch) const {
  if (dropping())
    added = DropRows(axis, added, batch, options_.dropout, context.random, context.sequence, site, layer_);
  return Add(residual, added, context.dt);
}

dropout::ProbabilityDropout Block::ProbabilityDropoutOf(const models::RandomContext& random) const {
  return {.mask = {options_.dropout, MaskSeed(random, "probabilities", layer_)},
          .first_sample = random.first_sample,
          .first_head = attention_axis_.rank() * (options_.heads / attention_axis_.size()),
          .whole_heads = options_.heads};
}

std::vector<tensor_parallel::SplitGroup> Block::SplitGroups(const std::string& name) {
  using tensor_parallel::Split;
  const std::string attention = name + "." + names_.attention, mlp = name + "." + names_.mlp;
  const auto layer = [](const std::string& module, Split split, const Linear& linear) {
    return tensor_parallel::SplitLayer{
        .name = module, .split = split, .weight = linear.weight, .bias = linear.bias};
  };
  tensor_parallel::SplitLayer in = layer(attention + "." + names_.qkv, Split::kColumns, qkv_);
  tensor_parallel::SplitLayer out =
      layer(attention + "." + names_.attention_out, Split::kRows, attention_out_);
  in.sections = 3;
  in.granularity = out.granularity = options_.head_width;
  std::vector<tensor_parallel::SplitGroup> groups = {
      {.name = attention, .layers = {in, out}, .equal_parts = true, .use = [this](const TensorAxis& axis) {
         attention_axis_ = axis;
       }}};
  if (moe_ != nullptr) {
    for (tensor_parallel::SplitGroup& group : moe_->SplitGroups(mlp)) groups.push_back(std::move(group));
    return groups;
  }
  groups.push_back({.name = mlp,
                    .layers = {layer(mlp + "." + names_.mlp_in, Split::kColumns, *mlp_in_),
                               layer(mlp + "." + names_.mlp_out, Split::kRows, *mlp_out_)},
                    .use = [this](const TensorAxis& axis) { mlp_axis_ = axis; }});
  return groups;
}

void Block::ResetParameters(const models::ModuleModel& model) const {
  norm_1_.Reset();
  norm_2_.Reset();
  qkv_.Reset(model, options_.deviation);
  attention_out_.Reset(model, options_.out_deviation);
  if (moe_ != nullptr) return moe_->ResetBlock(model, options_.deviation, options_.out_deviation);
  mlp_in_->Reset(model, options_.deviation);
  mlp_out_->Reset(model, options_.out_deviation);
}

void Block::ResetExperts(const models::ModuleModel& model) const {
  moe_->ResetExperts(model, options_.deviation, options_.out_deviation);
}

}  // namespace plait::transformer
