#include "tests/parity/serial_adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "base/testing/nan_is_infinite.h"
#include "comm/buffer.h"
#include "comm/testing/world.h"

namespace plait::parity {

SerialAdamW::SerialAdamW(const NamedTensors& parameters, const parallel::ShardedOptimizerOptions& settings,
                         const Decays& decays) {
  std::vector<at::Tensor> decayed, others;
  for (const auto& [name, p] : parameters) {
    parameters_.push_back(p);
    const bool position = name == "pos_embed" || name == "cls_token";
    // Those of experts are matrices.
    const bool bias = absl::EndsWith(name, "bias");
    const bool by_default = p.dim() >= 2 && !position && !bias;
    ((decays ? decays(name) : by_default) ? decayed : others).push_back(p);
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

int Steps(int most) { return comm::testing::World().size() >= 4 ? std::min(most, 5) : most; }

bool TrainsSerially() { return comm::testing::World().rank() == 0; }

void TakeFromFirstRank(SerialTraining& run) {
  TakeFromFirstRank(run.losses);
  TakeFromFirstRank(run.parameters);
}

void TakeFromFirstRank(std::vector<double>& numbers) {
  auto size = static_cast<std::int64_t>(numbers.size());
  comm::testing::World().Broadcast(comm::BufferOf(absl::MakeSpan(&size, 1)), 0);
  numbers.resize(static_cast<std::size_t>(size));
  comm::testing::World().Broadcast(comm::BufferOf(absl::MakeSpan(numbers)), 0);
}

void TakeFromFirstRank(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor values = tensor.detach().contiguous();
    comm::testing::World().Broadcast(
        {.data = values.data_ptr(), .count = static_cast<std::int64_t>(values.nbytes())}, 0);
    if (values.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(values);
  }
}

NamedTensors NamedParameters(const std::vector<models::ParameterUnit>& units) {
  NamedTensors named;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& p : unit.parameters) named[p.name] = p.tensor;
  }
  return named;
}

double Difference(const SerialTraining& a, const SerialTraining& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    largest = std::max(largest, base::NanIsInfinite(std::abs(a.losses[i] / b.losses[i] - 1)));
  }
  for (const auto& [name, expected] : b.parameters) {
    const double difference = (a.parameters.at(name) - expected).abs().max().item<double>();
    if (difference != 0)
      largest = std::max(largest, base::NanIsInfinite(difference / expected.abs().max().item<double>()));
  }
  return largest;
}

void DrawIn(at::ScalarType type, const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  double seed = 0;
  for (const auto& [name, p] : parameters) {
    const at::Tensor n = at::arange(p.numel(), at::kDouble) + (seed += 100);
    const at::Tensor values = (at::sin(n * n * 0.37) * 0.3).to(at::kFloat).view(p.sizes());
    const bool scale = p.dim() == 1 && name.ends_with("weight");  // of a norm
    p.set_data((scale ? values + 1 : values).to(type));
  }
}

void Perturb(const std::vector<at::Tensor>& parameters, double relative) {
  const at::NoGradGuard no_grad;
  double seed = 0.5;
  for (const at::Tensor& p : parameters) {
    const at::Tensor n = at::arange(p.numel(), p.options()) + (seed += 1000);
    p.mul_(1 + relative * at::sin(n * n * 0.37).sign().view(p.sizes()));
  }
}

double RoundingBound(int steps, at::ScalarType type, double growth) {
  const double u = type == at::kDouble ? 0x1p-53 : 0x1p-24;
  return 2 * steps * 3 * u * growth;
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
