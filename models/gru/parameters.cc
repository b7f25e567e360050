#include "models/gru/parameters.h"

#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>

namespace plait::gru {
namespace {

class GruParameters final : public torch::nn::Module {
 public:
  GruParameters(const GruConfig& config, const at::TensorOptions& options) : Module("GRU") {
    const double bound = 1.0 / std::sqrt(static_cast<double>(config.hidden));
    const std::int64_t gates = 3 * config.hidden;
    const auto add = [&](const std::string& name, at::IntArrayRef sizes) {
      register_parameter(name, at::empty(sizes, options).uniform_(-bound, bound));
    };
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string suffix = "_l" + std::to_string(layer);
      add("weight_ih" + suffix, {gates, layer == 0 ? config.input : config.hidden});
      add("weight_hh" + suffix, {gates, config.hidden});
      add("bias_ih" + suffix, {gates});
      add("bias_hh" + suffix, {gates});
    }
  }
};

}  // namespace

std::shared_ptr<torch::nn::Module> NewGruParameters(const GruConfig& config,
                                                    const at::TensorOptions& options) {
  return std::make_shared<GruParameters>(config, options);
}

}  // namespace plait::gru
