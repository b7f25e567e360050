#include "models/transformer/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include "base/seed.h"
#include "models/initial_values.h"
#include "models/rowwise/rowwise.h"
#include "parallel/dropout/dropout.h"

namespace plait::transformer {

using tensor_parallel::Residual;
using tensor_parallel::TensorAxis;

std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>());
}

at::Tensor Embedding(torch::nn::Module& parent, const std::string& name, std::int64_t count,
                     std::int64_t width, const at::TensorOptions& tensor_options) {
  return Container(parent, name)->register_parameter("weight", at::empty({count, width}, tensor_options));
}

Norm::Norm(torch::nn::Module& parent, const std::string& name, std::int64_t width, bool with_bias,
           double norm_eps, const at::TensorOptions& tensor_options, NormKind norm_kind)
    : eps(norm_eps), kind(norm_kind) {
  const auto module = Container(parent, name);
  weight = module->register_parameter("weight", at::empty({width}, tensor_options));
  if (with_bias) bias = module->register_parameter("bias", at::empty({width}, tensor_options));
}

at::Tensor Norm::Forward(const at::Tensor& rows) const {
  if (kind == NormKind::kRms) return rowwise::RmsNorm(rows, weight, eps);
  return rowwise::LayerNorm(rows, weight, bias, eps);
}

Residual Norm::Forward(const Residual& rows) const {
  return Map(rows, [this](const at::Tensor& x) { return Forward(x); });
}

void Norm::Reset() const {
  models::Fill(weight, 1);
  models::Fill(bias, 0);
}

Linear::Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
               bool with_bias, const at::TensorOptions& tensor_options) {
  const auto module = Container(parent, name);
  weight = module->register_parameter("weight", at::empty({out, in}, tensor_options));
  if (with_bias) bias = module->register_parameter("bias", at::empty({out}, tensor_options));
}

void Linear::Reset(const models::ModuleModel& model, double deviation) const {
  models::DrawNormal(weight, model.PlacementOf(weight), deviation);
  models::Fill(bias, 0);
}

at::Tensor TokenIndices(const TensorAxis& axis, std::int64_t rows, std::int64_t batch,
                        const models::RandomContext& random, const models::SequencePart& sequence,
                        at::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  const bool split = axis.sequence_parallel();
  const std::int64_t seq = batch == 0 ? 0 : rows * (split ? axis.size() : 1) / batch;
  const std::int64_t first = split ? axis.rank() * rows : 0;
  if (!sequence.positions.defined()) {
    return at::arange(random.first_sample * seq + first, random.first_sample * seq + first + rows, options);
  }
  const at::Tensor samples =
      at::arange(random.first_sample, random.first_sample + batch, options).unsqueeze(1);
  return (samples * sequence.length + sequence.positions.to(device)).flatten().narrow(0, first, rows);
}

Residual DropRows(const TensorAxis& axis, const Residual& rows, std::int64_t batch, double probability,
                  const models::RandomContext& random, const models::SequencePart& sequence, const char* site,
                  std::int64_t layer) {
  const std::int64_t mine = rows.local().size(0), width = rows.local().size(1);
  const at::Tensor indices = TokenIndices(axis, mine, batch, random, sequence, rows.local().device());
  const dropout::Mask mask = {probability, MaskSeed(random, site, layer)};
  return Map(rows, [&](const at::Tensor& x) { return dropout::Dropout(x, mask, {indices, width}); });
}

std::uint64_t MaskSeed(const models::RandomContext& random, const char* site, std::int64_t layer) {
  return base::DeriveSeed(random.seed, site, static_cast<std::uint64_t>(layer));
}

}  // namespace plait::transformer
