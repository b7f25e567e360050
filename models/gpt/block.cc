#include "models/gpt/block.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cmath>
#include <utility>
#include <vector>

#include "models/attention/causal_attention.h"
#include "models/attention/short_attention.h"
#include "models/linear/linear.h"
#include "models/rowwise/rowwise.h"

namespace plait::gpt {
namespace {

constexpr double kNormEps = 1e-5;

}  // namespace

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

at::Tensor Linear::Forward(const at::Tensor& rows) const { return linear::Linear(rows, weight, bias); }

Block::Block(std::shared_ptr<torch::nn::Module> module, const GptOptions& options,
             const at::TensorOptions& tensor_options)
    : options_(options),
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
  const at::Tensor rows = input.hidden.reshape({-1, options_.n_embd});
  const at::Tensor attended = Attention(ln_1_.Forward(rows), input.hidden.size(0), context);
  const at::Tensor middle = AddProjected(rows, attended, attention_out_, context.dt);
  const auto kind = options_.gelu == Gelu::kTanh ? rowwise::GeluKind::kTanh : rowwise::GeluKind::kExact;
  const at::Tensor wide = rowwise::Gelu(mlp_in_.Forward(ln_2_.Forward(middle)), kind);
  return {AddProjected(middle, wide, mlp_out_, context.dt).view(input.hidden.sizes()), input.auxiliary_loss};
}

std::vector<at::Tensor> Block::Parameters() const { return module_->parameters(); }

// Rows in, rows out: queries, keys and values are views of one product, and their gradients are written
// side by side.
at::Tensor Block::Attention(const at::Tensor& rows, std::int64_t batch,
                            const models::BlockContext& context) const {
  const std::int64_t heads = options_.n_head, width = options_.n_embd, seq = rows.size(0) / batch;
  const at::Tensor product = attention_in_.Forward(rows);
  const attention::AttentionSizes sizes{.batch = batch, .heads = heads};
  if (context.cache == nullptr && !dropping() && attention::UsesShortAttention(product, sizes)) {
    return attention::ShortAttention(product, sizes);
  }
  const std::vector<at::Tensor> parts = product.view({batch, seq, 3, heads, width / heads}).unbind(2);
  const at::Tensor out =
      attention::CausalAttention(parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2),
                                 {.dropout = dropping() ? options_.dropout : 0,
                                  .cache = context.cache,
                                  .layer = context.step,
                                  .capacity = options_.block_size});
  return out.transpose(1, 2).reshape({-1, width});
}

at::Tensor Block::AddProjected(const at::Tensor& residual, const at::Tensor& rows, const Linear& projection,
                               double dt) const {
  if (dt == 1 && !dropping()) {
    return linear::AddLinear(residual, rows, projection.weight, projection.bias);
  }
  at::Tensor added = projection.Forward(rows);
  if (dropping()) added = at::dropout(added, options_.dropout, true);
  return dt == 1 ? added.add_(residual) : residual.add(added, dt);
}

void Block::ResetParameters() const {
  for (const Norm* norm : {&ln_1_, &ln_2_}) {
    Fill(norm->weight, 1);
    Fill(norm->bias, 0);
  }
  // Each block adds twice to the residual stream, which keeps its variance so.
  const double out = kInitialDeviation / std::sqrt(2.0 * options_.n_layer);
  DrawNormal(attention_in_.weight, kInitialDeviation);
  DrawNormal(attention_out_.weight, out);
  DrawNormal(mlp_in_.weight, kInitialDeviation);
  DrawNormal(mlp_out_.weight, out);
  for (const Linear* linear : {&attention_in_, &attention_out_, &mlp_in_, &mlp_out_}) Fill(linear->bias, 0);
}

void DrawNormal(const at::Tensor& parameter, double deviation) {
  if (parameter.is_meta()) return;
  at::Tensor numbers = at::empty(parameter.sizes(), at::kFloat);
  parameter.detach().copy_(numbers.normal_(0, deviation));
}

void Fill(const at::Tensor& parameter, double value) {
  if (parameter.defined() && !parameter.is_meta()) parameter.detach().fill_(value);
}

}  // namespace plait::gpt
