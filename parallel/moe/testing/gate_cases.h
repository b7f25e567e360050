// Gates of every kind, and batches for them.
#ifndef PLAIT_PARALLEL_MOE_TESTING_GATE_CASES_H_
#define PLAIT_PARALLEL_MOE_TESTING_GATE_CASES_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/moe/gate.h"

namespace plait::moe::testing {

struct GateCase {
  std::string name;
  GateOptions options;
  bool training = true;
};

// Every gate with all its losses on `experts`; k at most `k`, training and evaluation.
inline std::vector<GateCase> AllGates(int experts, int k) {
  std::vector<GateCase> cases;
  const auto add = [&](const std::string& name, GateOptions options) {
    options.experts = experts;
    options.balance_weight = 0.7;
    options.z_weight = 0.3;
    if (options.k > experts) return;
    for (const bool training : {true, false}) {
      cases.push_back({name + (training ? " training" : " evaluation"), options, training});
    }
  };
  for (const bool normalizes : {true, false}) {
    const std::string name = normalizes ? ", normalized" : "";
    add("top-k" + name, {.kind = GateKind::kTopK, .k = k, .normalizes = normalizes});
    add("noisy-top-k" + name, {.kind = GateKind::kNoisyTopK, .k = k, .normalizes = normalizes});
    add("bias" + name, {.kind = GateKind::kBias, .k = k, .normalizes = normalizes});
    add("sigmoid bias" + name, {.kind = GateKind::kBias, .k = k, .normalizes = normalizes, .sigmoid = true});
  }
  add("switch", {.kind = GateKind::kSwitch, .k = 1});
  add("gshard", {.kind = GateKind::kGShard, .k = 2});
  return cases;
}

struct GateBatch {
  at::Tensor logits, noise_logits, bias, token_indices;

  GateContext context(bool training, std::uint64_t seed = 17) const {
    return {.training = training,
            .seed = seed,
            .token_indices = token_indices,
            .bias = bias,
            .noise_logits = noise_logits};
  }
  // Rows [first, first + count), leaves of autograd of their own.
  GateBatch Part(std::int64_t first, std::int64_t count) const {
    const auto cut = [&](const at::Tensor& x) { return x.detach().narrow(0, first, count).clone(); };
    return {cut(logits).requires_grad_(true), cut(noise_logits).requires_grad_(true), bias,
            cut(token_indices)};
  }
};

// Token indices begin at 1000.
inline GateBatch RandomBatch(std::int64_t tokens, int experts, at::ScalarType type = at::kDouble) {
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/tokens * 1000 + experts);
  const auto draw = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator, type); };
  GateBatch batch;
  batch.logits = draw({tokens, experts}).requires_grad_(true);
  batch.noise_logits = draw({tokens, experts}).requires_grad_(true);
  batch.bias = (draw({experts}) / 4).to(at::kFloat);
  batch.token_indices = at::arange(1000, 1000 + tokens, at::kLong);
  return batch;
}

}  // namespace plait::moe::testing

#endif  // PLAIT_PARALLEL_MOE_TESTING_GATE_CASES_H_
