#include "models/vit/block.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <torch/nn/module.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "models/attention/short_attention.h"
#include "models/linear/linear.h"
#include "models/rowwise/rowwise.h"

namespace plait::vit {

std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>());
}

Norm::Norm(torch::nn::Module& parent, const std::string& name, const VitOptions& options,
           const at::TensorOptions& tensor_options)
    : eps(options.norm_eps) {
  const auto module = Container(parent, name);
  weight = module->register_parameter("weight", at::empty({options.dim}, tensor_options));
  bias = module->register_parameter("bias", at::empty({options.dim}, tensor_options));
}

at::Tensor Norm::Forward(const at::Tensor& rows) const { return rowwise::LayerNorm(rows, weight, bias, eps); }

void Norm::Reset() const {
  Fill(weight, 1);
  Fill(bias, 0);
}

Linear::Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
               bool with_bias, const at::TensorOptions& tensor_options) {
  const auto module = Container(parent, name);
  weight = module->register_parameter("weight", at::empty({out, in}, tensor_options));
  if (with_bias) bias = module->register_parameter("bias", at::empty({out}, tensor_options));
}

at::Tensor Linear::Forward(const at::Tensor& rows) const { return linear::Linear(rows, weight, bias); }

void Linear::Reset() const {
  DrawNormal(weight);
  Fill(bias, 0);
}

Block::Block(std::shared_ptr<torch::nn::Module> module, const VitOptions& options,
             const at::TensorOptions& tensor_options)
    : options_(options),
      module_(std::move(module)),
      norm1_(*module_, "norm1", options, tensor_options),
      attn_(Container(*module_, "attn")),
      qkv_(*attn_, "qkv", options.dim, 3 * options.inner_dim(), options.qkv_bias, tensor_options),
      proj_(*attn_, "proj", options.inner_dim(), options.dim, true, tensor_options),
      norm2_(*module_, "norm2", options, tensor_options),
      mlp_(Container(*module_, "mlp")),
      fc1_(*mlp_, "fc1", options.dim, options.mlp_dim, true, tensor_options),
      fc2_(*mlp_, "fc2", options.mlp_dim, options.dim, true, tensor_options) {}

bool Block::dropping() const { return options_.dropout > 0 && module_->is_training(); }

models::BlockState Block::Forward(const models::BlockState& input, const models::BlockContext& context) {
  const at::Tensor rows = input.hidden.reshape({-1, options_.dim});
  const at::Tensor attended = Attend(norm1_.Forward(rows), input.hidden.size(0));
  const at::Tensor middle = AddProjected(rows, attended, proj_, context.dt);
  const at::Tensor wide = rowwise::Gelu(fc1_.Forward(norm2_.Forward(middle)), rowwise::GeluKind::kExact);
  return {AddProjected(middle, wide, fc2_, context.dt).view(input.hidden.sizes()), input.auxiliary_loss};
}

std::vector<at::Tensor> Block::Parameters() const { return module_->parameters(); }

// Rows in, rows out: queries, keys and values are views of one product.
at::Tensor Block::Attend(const at::Tensor& rows, std::int64_t batch) const {
  const std::int64_t heads = options_.heads, width = options_.head_dim, inner = options_.inner_dim();
  const at::Tensor product = qkv_.Forward(rows);
  const attention::AttentionSizes sizes{.batch = batch, .heads = heads, .causal = false};
  const bool math = options_.attention == Attention::kMath;
  if (!math && !dropping() && batch > 0 && attention::UsesShortAttention(product, sizes)) {
    return attention::ShortAttention(product, sizes);
  }
  const std::vector<at::Tensor> parts =
      product.view({batch, options_.tokens(), 3, heads, width}).permute({2, 0, 3, 1, 4}).unbind(0);
  const double dropout = dropping() ? options_.dropout : 0;
  at::Tensor out;
  if (math) {
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    at::Tensor probabilities = at::softmax(at::matmul(parts[0] * scale, parts[1].transpose(2, 3)), -1);
    if (dropout > 0) probabilities = at::dropout(probabilities, dropout, true);
    out = at::matmul(probabilities, parts[2]);
  } else {
    out = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt, dropout);
  }
  return out.transpose(1, 2).reshape({rows.size(0), inner});
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
  for (const Norm* norm : {&norm1_, &norm2_}) norm->Reset();
  for (const Linear* linear : {&qkv_, &proj_, &fc1_, &fc2_}) linear->Reset();
}

void DrawNormal(const at::Tensor& parameter) {
  if (parameter.is_meta()) return;
  at::Tensor numbers = at::empty(parameter.sizes(), at::kFloat);
  parameter.detach().copy_(numbers.normal_(0, 0.02));
}

void Fill(const at::Tensor& parameter, double value) {
  if (parameter.defined() && !parameter.is_meta()) parameter.detach().fill_(value);
}

}  // namespace plait::vit
