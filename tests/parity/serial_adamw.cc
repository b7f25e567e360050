#include "tests/parity/serial_adamw.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

namespace plait::parity {

SerialAdamW::SerialAdamW(const NamedTensors& parameters, const parallel::ShardedOptimizerOptions& settings) {
  std::vector<at::Tensor> decayed, others;
  for (const auto& [name, p] : parameters) {
    parameters_.push_back(p);
    const bool position = name == "pos_embed" || name == "cls_token";
    (p.dim() >= 2 && !position ? decayed : others).push_back(p);
  }
  const auto options = [&settings](double decay) {
    auto o = std::make_unique<torch::optim::AdamWOptions>(settings.lr);
    o->betas({settings.beta1, settings.beta2}).eps(settings.epsilon).weight_decay(decay);
    return o;
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(decayed, options(settings.weight_decay));
  groups.emplace_back(others, options(0));
  optimizer_ = std::make_unique<torch::optim::AdamW>(groups, torch::optim::AdamWOptions(settings.lr));
}

SerialAdamW::~SerialAdamW() = default;

void SerialAdamW::ZeroGradients() { optimizer_->zero_grad(); }

void SerialAdamW::Step(double clip_norm) {
  torch::nn::utils::clip_grad_norm_(parameters_, clip_norm);
  optimizer_->step();
}

NamedTensors NamedParameters(const std::vector<models::ParameterUnit>& units) {
  NamedTensors named;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& p : unit.parameters) named[p.name] = p.tensor;
  }
  return named;
}

void ExpectParameters(parallel::DataParallel& dp, const NamedTensors& expected, double tolerance) {
  dp.VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) {
      const at::Tensor serial = models::LocalPart(expected.at(p.name).detach(), p.placement);
      const double difference = (p.tensor.detach() - serial).abs().max().item<double>();
      EXPECT_LE(difference / serial.abs().max().item<double>(), tolerance) << p.name;
    }
  });
}

}  // namespace plait::parity
