#include "models/gpt/block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/seed.h"
#include "models/attention/causal_attention.h"
#include "models/attention/short_attention.h"
#include "models/dropout/dropout.h"
#include "models/initial_values.h"
#include "models/rowwise/rowwise.h"

namespace plait::gpt {
namespace {

using tensor_parallel::Residual;
using tensor_parallel::Shard;
using tensor_parallel::TensorAxis;

constexpr double kNormEps = 1e-5;

std::uint64_t MaskSeed(const models::RandomContext& random, const char* site, std::int64_t layer) {
  return base::DeriveSeed(random.seed, site, static_cast<std::uint64_t>(layer));
}

}  // namespace

Residual DropRows(const TensorAxis& axis, const Residual& rows, std::int64_t batch, double probability,
                  const models::RandomContext& random, const char* site, std::int64_t layer) {
  const std::int64_t mine = rows.local().size(0), width = rows.local().size(1);
  const bool split = axis.sequence_parallel();
  const std::int64_t seq = mine * (split ? axis.size() : 1) / batch;
  const std::int64_t first = random.first_sample * seq + (split ? axis.rank() * mine : 0);
  const at::Tensor indices = at::arange(first, first + mine, at::TensorOptions(at::kLong).device(rows.local().device()));
  const dropout::Mask mask = {probability, MaskSeed(random, site, layer)};
  return Map(rows, [&](const at::Tensor& x) { return dropout::Dropout(x, mask, {indices, width}); });
}

std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>());
}

at::Tensor Embedding(torch::nn::Module& parent, const std::string& name, std::int64_t count,
                     std::int64_t width, const at::TensorOptions& tensor_options) {
  return Container(parent, name)->register_parameter("weight", at::empty({count, width}, tensor_options));
}

Norm::Norm(torch::nn::Module& parent, const std::string& name, const GptOptions& options,
           const at::TensorOptions& tensor_options) {
  const auto module = Container(parent, name);
  weight = module->register_parameter("weight", at::empty({options.n_embd}, tensor_options));
  if (options.bias) bias = module->register_parameter("bias", at::empty({options.n_embd}, tensor_options));
}

at::Tensor Norm::Forward(const at::Tensor& rows) const {
  return rowwise::LayerNorm(rows, weight, bias, kNormEps);
}

Linear::Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
               bool with_bias, const at::TensorOptions& tensor_options) {
  const auto module = Container(parent, name);
  weight = module->register_parameter("weight", at::empty({out, in}, tensor_options));
  if (with_bias) bias = module->register_parameter("bias", at::empty({out}, tensor_options));
}

Block::Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const GptOptions& options,
             const at::TensorOptions& tensor_options)
    : layer_(layer),
      options_(options),
      module_(std::move(module)),
      ln_1_(*module_, "ln_1", options, tensor_options),
      attn_(Container(*module_, "attn")),
      attention_in_(*attn_, "c_attn", options.n_embd, 3 * options.n_embd, options.bias, tensor_options),
      attention_out_(*attn_, "c_proj", options.n_embd, options.n_embd, options.bias, tensor_options),
      ln_2_(*module_, "ln_2", options, tensor_options),
      mlp_(Container(*module_, "mlp")),
      mlp_in_(*mlp_, "c_fc", options.n_embd, 4 * options.n_embd, options.bias, tensor_options),
      mlp_out_(*mlp_, "c_proj", 4 * options.n_embd, options.n_embd, options.bias, tensor_options) {}

bool Block::dropping() const { return options_.dropout > 0 && module_->is_training(); }

models::BlockState Block::Forward(const models::BlockState& input, const models::BlockContext& context) {
  const Residual rows(input.hidden.reshape({-1, options_.n_embd}));
  const std::int64_t batch = input.hidden.size(0);
  const auto norm = [](const Norm& n) { return [&n](const at::Tensor& x) { return n.Forward(x); }; };
  const Shard<1> attended = Attention(Map(rows, norm(ln_1_)), batch, context);
  const Residual middle = AddProjected(attention_axis_, rows, attended, attention_out_, context, batch);
  const auto kind = options_.gelu == Gelu::kTanh ? rowwise::GeluKind::kTanh : rowwise::GeluKind::kExact;
  const Shard<1> wide =
      Map(ColumnLinear(mlp_axis_, Map(middle, norm(ln_2_)), {mlp_in_.parameters()})[0],
          [kind](const at::Tensor& x) { return rowwise::Gelu(x, kind); });
  const Residual output = AddProjected(mlp_axis_, middle, wide, mlp_out_, context, batch);
  return {output.local().view(input.hidden.sizes()), input.auxiliary_loss};
}

std::vector<at::Tensor> Block::Parameters() const { return module_->parameters(); }

// Rows in, rows out: queries, keys and values are views of one product, and their gradients are written
// side by side.
Shard<1> Block::Attention(const Residual& rows, std::int64_t batch, const models::BlockContext& context) const {
  const Shard<1> product = ColumnLinear(attention_axis_, rows, {attention_in_.parameters()})[0];
  const std::int64_t heads = options_.n_head / attention_axis_.size(), width = options_.n_embd / options_.n_head;
  const attention::AttentionSizes sizes{.batch = batch, .heads = heads};
  if (context.cache == nullptr && !dropping() && attention::UsesShortAttention(product.local(), sizes)) {
    return Shard<1>(attention::ShortAttention(product.local(), sizes));
  }
  const std::vector<at::Tensor> parts = product.local().view({batch, -1, 3, heads, width}).unbind(2);
  std::function<at::Tensor(const at::Tensor&)> drop;
  if (dropping()) drop = [&](const at::Tensor& p) { return DropProbabilities(p, context.random); };
  const at::Tensor out =
      attention::CausalAttention(parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2),
                                 {.dropout = drop,
                                  .cache = context.cache,
                                  .layer = context.step,
                                  .capacity = options_.block_size});
  return Shard<1>(out.transpose(1, 2).reshape({-1, heads * width}));
}

Residual Block::AddProjected(const TensorAxis& axis, const Residual& residual, const Shard<1>& rows,
                             const Linear& projection, const models::BlockContext& context,
                             std::int64_t batch) const {
  if (context.dt == 1 && !dropping()) return AddRowLinear(axis, residual, rows, projection.parameters());
  Residual added = RowLinear(axis, rows, projection.parameters());
  const char* site = &projection == &attention_out_ ? "attention" : "mlp";
  if (dropping()) added = DropRows(axis, added, batch, options_.dropout, context.random, site, layer_);
  return Add(residual, added, context.dt);
}

at::Tensor Block::DropProbabilities(const at::Tensor& probabilities, const models::RandomContext& random) const {
  const std::int64_t batch = probabilities.size(0), heads = probabilities.size(1), seq = probabilities.size(2);
  const auto options = at::TensorOptions(at::kLong).device(probabilities.device());
  const at::Tensor sample = at::arange(random.first_sample, random.first_sample + batch, options).view({-1, 1, 1});
  const std::int64_t first_head = attention_axis_.rank() * heads;
  const at::Tensor head = at::arange(first_head, first_head + heads, options).view({1, -1, 1});
  const at::Tensor rows = (sample * options_.n_head + head) * seq + at::arange(seq, options);
  const dropout::Mask mask = {options_.dropout, MaskSeed(random, "probabilities", layer_)};
  return dropout::Dropout(probabilities.reshape({-1, seq}), mask, {rows.flatten(), seq}).view(probabilities.sizes());
}

std::vector<tensor_parallel::SplitGroup> Block::SplitGroups(const std::string& name) {
  using tensor_parallel::Split;
  const std::int64_t width = options_.n_embd / options_.n_head;
  const std::string attention = name + ".attn", mlp = name + ".mlp";
  const auto layer = [](const std::string& module, Split split, const Linear& linear) {
    return tensor_parallel::SplitLayer{
        .name = module, .split = split, .weight = linear.weight, .bias = linear.bias};
  };
  tensor_parallel::SplitLayer in = layer(attention + ".c_attn", Split::kColumns, attention_in_);
  tensor_parallel::SplitLayer out = layer(attention + ".c_proj", Split::kRows, attention_out_);
  in.sections = 3;
  in.granularity = out.granularity = width;
  return {{.name = attention,
           .layers = {in, out},
           .equal_parts = true,
           .use = [this](const TensorAxis& axis) { attention_axis_ = axis; }},
          {.name = mlp,
           .layers = {layer(mlp + ".c_fc", Split::kColumns, mlp_in_),
                      layer(mlp + ".c_proj", Split::kRows, mlp_out_)},
           .use = [this](const TensorAxis& axis) { mlp_axis_ = axis; }}};
}

void Block::ResetParameters(const models::ModuleModel& model) const {
  for (const Norm* norm : {&ln_1_, &ln_2_}) {
    models::Fill(norm->weight, 1);
    models::Fill(norm->bias, 0);
  }
  const auto reset = [&](const Linear& linear, double deviation) {
    models::DrawNormal(linear.weight, model.PlacementOf(linear.weight), deviation);
    models::Fill(linear.bias, 0);
  };
  // Each block adds twice to the residual stream, which keeps its variance so.
  const double out = kInitialDeviation / std::sqrt(2.0 * options_.n_layer);
  reset(attention_in_, kInitialDeviation);
  reset(attention_out_, out);
  reset(mlp_in_, kInitialDeviation);
  reset(mlp_out_, out);
}

}  // namespace plait::gpt
