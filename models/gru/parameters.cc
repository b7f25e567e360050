#include "models/gru/parameters.h"

#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstddef>
#include <string>

namespace plait::gru {
namespace {

double BoundFor(std::int64_t inputs) { return 1.0 / std::sqrt(static_cast<double>(inputs)); }

void Draw(const at::Tensor& parameter, double bound) {
  parameter.detach().copy_(at::empty(parameter.sizes(), at::kFloat).uniform_(-bound, bound));
}

}  // namespace

std::shared_ptr<torch::nn::Module> NewGruParameters(const GruConfig& config,
                                                    const at::TensorOptions& options) {
  auto module = std::make_shared<torch::nn::Module>("GRU");
  const std::int64_t gates = 3 * config.hidden;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string suffix = "_l" + std::to_string(layer);
    const std::int64_t inputs = layer == 0 ? config.input : config.hidden;
    module->register_parameter("weight_ih" + suffix, at::empty({gates, inputs}, options));
    module->register_parameter("weight_hh" + suffix, at::empty({gates, config.hidden}, options));
    module->register_parameter("bias_ih" + suffix, at::empty({gates}, options));
    module->register_parameter("bias_hh" + suffix, at::empty({gates}, options));
  }
  DrawGruParameters(config, module->parameters());
  return module;
}

void DrawGruParameters(const GruConfig& config, const std::vector<at::Tensor>& parameters) {
  if (parameters.front().is_meta()) return;
  const bool implicit = config.kind == GruKind::kImplicit;
  const double bound = BoundFor(config.hidden);
  for (std::size_t first = 0; first < parameters.size(); first += 4) {
    const double bound_ih = implicit ? BoundFor(parameters[first].size(1)) : bound;
    Draw(parameters[first], bound_ih);
    Draw(parameters[first + 1], bound);
    Draw(parameters[first + 2], bound_ih);
    Draw(parameters[first + 3], bound);
    if (implicit) parameters[first + 3].detach().slice(0, 0, 2 * config.hidden).zero_();
  }
}

}  // namespace plait::gru
