#include "models/llama/block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <torch/nn/module.h>

#include <cmath>
#include <utility>

#include "models/attention/causal_attention.h"
#include "models/key_value_cache.h"
#include "models/linear/linear.h"

namespace plait::llama {
namespace {

// x + dt rows weight^T.
at::Tensor AddProjected(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& weight, double dt) {
  if (dt == 1) return linear::AddLinear(x, rows, weight);
  return x.add(linear::Linear(rows, weight), dt);
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

at::Tensor Rotation::Apply(const at::Tensor& x, std::int64_t first) const {
  const auto table = [&](const at::Tensor& all) { return all.narrow(0, first, x.size(1)).to(x.device()); };
  const at::Tensor swapped = x.unflatten(3, {-1, 2}).flip(4).flatten(3);
  return (x * table(cosines) + swapped * table(sines)).to(x.scalar_type());
}

std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>());
}

at::Tensor Weight(torch::nn::Module& parent, const std::string& name, at::IntArrayRef shape,
                  const at::TensorOptions& tensor_options) {
  return Container(parent, name)->register_parameter("weight", at::empty(shape, tensor_options));
}

Block::Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const LlamaOptions& options,
             std::shared_ptr<const Rotation> rotation, const at::TensorOptions& tensor_options)
    : module_(std::move(module)), layer_(layer), options_(options), rotation_(std::move(rotation)) {
  const std::int64_t dim = options.dim, kv = dim / options.n_heads * options.n_kv_heads;
  const auto attention = Container(*module_, "attention");
  wq_ = Weight(*attention, "wq", {dim, dim}, tensor_options);
  wk_ = Weight(*attention, "wk", {kv, dim}, tensor_options);
  wv_ = Weight(*attention, "wv", {kv, dim}, tensor_options);
  wo_ = Weight(*attention, "wo", {dim, dim}, tensor_options);
  const auto feed_forward = Container(*module_, "feed_forward");
  w1_ = Weight(*feed_forward, "w1", {options.hidden, dim}, tensor_options);
  w2_ = Weight(*feed_forward, "w2", {dim, options.hidden}, tensor_options);
  w3_ = Weight(*feed_forward, "w3", {options.hidden, dim}, tensor_options);
  attention_norm_ = Weight(*module_, "attention_norm", {dim}, tensor_options);
  ffn_norm_ = Weight(*module_, "ffn_norm", {dim}, tensor_options);
}

models::BlockState Block::Forward(const models::BlockState& input, const models::BlockContext& context) {
  const at::Tensor rows = input.hidden.reshape({-1, options_.dim});
  const at::Tensor attended =
      Attention(Normalized(rows, attention_norm_, options_.norm_eps), input.hidden.size(0), context);
  const at::Tensor middle = AddProjected(rows, attended, wo_, context.dt);
  const at::Tensor n = Normalized(middle, ffn_norm_, options_.norm_eps);
  const at::Tensor gated = at::silu(linear::Linear(n, w1_)) * linear::Linear(n, w3_);
  return {AddProjected(middle, gated, w2_, context.dt).view(input.hidden.sizes()), input.auxiliary_loss};
}

std::vector<at::Tensor> Block::Parameters() const { return module_->parameters(); }

at::Tensor Block::Attention(const at::Tensor& rows, std::int64_t batch,
                            const models::BlockContext& context) const {
  const std::int64_t width = options_.dim / options_.n_heads;
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length(context.step);
  const auto heads = [&](const at::Tensor& weight) {
    return linear::Linear(rows, weight).view({batch, -1, weight.size(0) / width, width});
  };
  const at::Tensor query = rotation_->Apply(heads(wq_), seen).transpose(1, 2);
  const at::Tensor key = rotation_->Apply(heads(wk_), seen).transpose(1, 2);
  const at::Tensor out = attention::CausalAttention(
      query, key, heads(wv_).transpose(1, 2),
      {.cache = context.cache, .layer = context.step, .capacity = options_.max_seq_len});
  return out.transpose(1, 2).reshape({-1, options_.dim});
}

void Block::ResetParameters() const {
  const double out = 0.02 / std::sqrt(2.0 * static_cast<double>(layer_ + 1));
  for (const at::Tensor* weight : {&wq_, &wk_, &wv_}) Draw(*weight, 0.02);
  Draw(wo_, out);
  Draw(w1_, 0.02);
  Draw(w2_, out);
  Draw(w3_, out);
  FillWithOnes(attention_norm_);
  FillWithOnes(ffn_norm_);
}

at::Tensor Normalized(const at::Tensor& rows, const at::Tensor& weight, double eps) {
  return at::rms_norm(rows, weight.sizes(), weight, eps);
}

void Draw(const at::Tensor& parameter, double deviation, double cut) {
  if (parameter.is_meta()) return;
  at::Tensor numbers = at::empty(parameter.sizes(), at::kFloat);
  if (cut > 0) {
    const double mass = std::erf(cut / std::sqrt(2.0));
    numbers.uniform_(-mass, mass).erfinv_().mul_(deviation * std::sqrt(2.0));
  } else {
    numbers.normal_(0, deviation);
  }
  parameter.detach().copy_(numbers);
}

void FillWithOnes(const at::Tensor& parameter) {
  if (!parameter.is_meta()) parameter.detach().fill_(1);
}

}  // namespace plait::llama
