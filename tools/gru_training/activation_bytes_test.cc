// What the plan says of activations against what LibTorch's allocator was asked for in passes and their
// backward, of the serial network and of the layer-parallel one, on one rank and several.
#include "tools/gru_training/activation_bytes.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "comm/testing/world.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/parameters.h"
#include "models/gru/serial.h"
#include "tests/parity/counting_allocator.h"

namespace plait::gru_training {
namespace {

using comm::testing::World;

struct Case {
  GruSettings settings;
  gru::GruConfig cell;
};

std::vector<Case> Cases() {
  std::vector<Case> cases(4);
  for (Case& c : cases) {
    c.settings.sequence_length = 64;
    c.cell = {.input = 5, .hidden = 24, .layers = 2, .kind = gru::GruKind::kImplicit};
  }
  cases[1].settings.lp.levels = 3;
  cases[1].settings.lp.iterations = 2;
  cases[1].settings.lp.forward_iterations = 3;
  cases[1].settings.lp.backward_sweeps = 0;
  cases[2].settings.lp.levels = 3;
  cases[2].settings.lp.cfactor = {2, 4};
  cases[2].settings.lp_coarse_hold = {1};
  cases[2].cell = {.input = 70, .hidden = 17, .layers = 1, .kind = gru::GruKind::kImplicit};
  cases[3].settings.lp.use_downcycle = true;
  cases[3].settings.lp.forward_finest_sweeps = 1;
  return cases;
}

// The last state of the top layer, by one of the networks.
using Network = std::function<at::Tensor(const at::Tensor& x)>;

// Bytes of a pass of `samples`, at most at once; with `trains`, of a pass and its backward.
double PeakBytes(const Case& c, const Network& network, bool trains, std::int64_t samples) {
  parity::CountingAllocator& tensors = parity::CountingAllocator::Install();
  const at::AutoGradMode recording(trains);
  const std::int64_t before = tensors.live_bytes();
  tensors.ForgetPeak();
  for (int pass = 0; pass < 2; ++pass) {
    const at::Tensor last =
        network(at::randn({samples, c.settings.sequence_length, c.cell.input}, at::kDouble));
    if (trains) last.sum().backward();
  }
  return static_cast<double>(tensors.peak_bytes() - before);
}

double PeakBytes(const Case& c, bool layer_parallel, bool trains, std::int64_t samples) {
  at::manual_seed(1);
  const auto module = gru::NewGruParameters(c.cell, at::kDouble);
  gru::SerialGru serial({.cell = c.cell, .final_time = c.settings.tf}, module);
  gru::LayerParallelGru parallel([module] { return module->parameters(); }, c.cell, at::kDouble, World(),
                                 c.settings.sequence_length, c.settings.tf, c.settings.lp.Options(),
                                 c.settings.StepOptions());
  const Network network = [&](const at::Tensor& x) {
    if (!layer_parallel) return serial.Forward(x).output;
    const at::Tensor state = parallel.Forward(x);
    return state.select(0, state.size(0) - 1);
  };
  return PeakBytes(c, network, trains, samples);
}

void ExpectPlanned(const Case& c, bool layer_parallel, bool trains) {
  const comm::Communicator& world = World();
  GruSettings settings = c.settings;
  settings.lp.force = layer_parallel;
  const ActivationBytes planned =
      ActivationBytesPerSample(settings, c.cell, at::kDouble, layer_parallel ? world.size() : 1);
  const auto expected = static_cast<double>(trains ? planned.training : planned.evaluation);
  // Without what does not grow with the samples, of the rank that has most.
  const double few = PeakBytes(c, layer_parallel, trains, 128);
  double most[1] = {(PeakBytes(c, layer_parallel, trains, 384) - few) / 256};
  world.AllReduce(comm::BufferOf(absl::MakeSpan(most)), comm::ReduceOp::kMax);
  EXPECT_LE(most[0], expected);
  // Not every cycle has the right-hand sides of the one before.
  EXPECT_GE(most[0], (layer_parallel ? 0.85 : 0.97) * expected);
}

TEST(ActivationBytes, AreThoseThatLibTorchAsksFor) {
  int number = 0;
  for (const Case& c : Cases()) {
    for (const bool layer_parallel : {false, true}) {
      for (const bool trains : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << "case " << number << (layer_parallel ? ", layer-parallel" : ", serial")
                     << (trains ? ", training" : ", evaluation"));
        ExpectPlanned(c, layer_parallel, trains);
      }
    }
    ++number;
  }
}

}  // namespace
}  // namespace plait::gru_training
