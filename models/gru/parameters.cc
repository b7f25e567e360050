#include "models/gru/parameters.h"

#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>

namespace plait::gru {
namespace {

double BoundFor(std::int64_t inputs) { return 1.0 / std::sqrt(static_cast<double>(inputs)); }

class GruParameters final : public torch::nn::Module {
 public:
  GruParameters(const GruConfig& config, const at::TensorOptions& options)
      : Module("GRU"), options_(options) {
    const double bound = BoundFor(config.hidden);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string suffix = "_l" + std::to_string(layer);
      const std::int64_t inputs = layer == 0 ? config.input : config.hidden;
      const bool implicit = config.kind == GruKind::kImplicit;
      const double bound_ih = implicit ? BoundFor(inputs) : bound;
      const std::int64_t gates = 3 * config.hidden;
      Add("weight_ih" + suffix, {gates, inputs}, bound_ih);
      Add("weight_hh" + suffix, {gates, config.hidden}, bound);
      Add("bias_ih" + suffix, {gates}, bound_ih);
      const at::Tensor bias_hh = Add("bias_hh" + suffix, {gates}, bound);
      if (implicit) bias_hh.detach().slice(0, 0, 2 * config.hidden).zero_();
    }
  }

 private:
  at::Tensor Add(const std::string& name, at::IntArrayRef sizes, double bound) {
    const at::Tensor values = at::empty(sizes, options_).uniform_(-bound, bound);
    register_parameter(name, values);
    return values;
  }

  at::TensorOptions options_;
};

}  // namespace

std::shared_ptr<torch::nn::Module> NewGruParameters(const GruConfig& config,
                                                    const at::TensorOptions& options) {
  return std::make_shared<GruParameters>(config, options);
}

}  // namespace plait::gru
