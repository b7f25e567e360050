// What ranks hold of states and recorded calls in layer-parallel training, counted by the allocator of all tensors, is the
// formula of mgrit/scaling/memory_model.h; and that falls with the ranks but for what every rank has.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/scaling/memory_model.h"
#include "models/odenet/odenet.h"
#include "tests/parity/counting_allocator.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using mgrit::LayerParallelOptions;
using mgrit::MakeLayerParallelOptions;
using mgrit::scaling::BatchShape;
using mgrit::scaling::MemoryOf;
using mgrit::scaling::RankMemory;

constexpr std::int64_t kBatch = 32, kChannels = 16, kLayers = 32;

odenet::OdeNetOptions Network(odenet::Form form) {
  return {.form = form,
          .sample =
              form == odenet::Form::kConv2d ? std::vector<std::int64_t>{4, 4} : std::vector<std::int64_t>{2},
          .channels = form == odenet::Form::kConv2d ? 4 : kChannels,
          .layers = kLayers};
}

at::Tensor State(odenet::Form form) {
  return form == odenet::Form::kConv2d ? at::rand({kBatch, 4, 4, 4}) : at::rand({kBatch, kChannels});
}

double Live() { return static_cast<double>(CountingAllocator::Install().live_bytes()); }
double Peak() { return static_cast<double>(CountingAllocator::Install().peak_bytes()); }
void ForgetPeak() { CountingAllocator::Install().ForgetPeak(); }

// Of one recorded call, by itself.
struct Call {
  double kept = 0;       // besides its input and its result
  double temporary = 0;  // while it is made, or differentiated
};

Call CallOf(models::Block& block, odenet::Form form) {
  const at::Tensor u = State(form).requires_grad_();
  const at::Tensor lambda = at::ones_like(u);
  const double before = Live();
  ForgetPeak();
  const at::Tensor out = block.Forward({u}, {}).hidden;
  Call call = {.kept = Live() - before - static_cast<double>(out.nbytes()), .temporary = Peak() - Live()};
  std::vector<at::Tensor> leaves = block.Parameters();
  leaves.push_back(u);
  const double recorded = Live();
  ForgetPeak();
  const auto gradients = torch::autograd::grad({out}, leaves, {lambda}, /*retain_graph=*/true);
  call.temporary = std::max(call.temporary, Peak() - recorded);
  return call;
}

struct Held {
  double behind_backward = 0, most = 0;
};

// Of the third pass: the first ones bring what later ones have as well.
Held Train(odenet::OdeNet& net, odenet::Form form, const BatchShape& shape) {
  const double before = Live();
  mgrit::LayerParallel solver(
      World(), [&](std::int64_t layer) { return net.blocks()[layer]; }, kLayers, 1.0, shape.solver);
  solver.set_propagation(shape.propagation);
  Held held;
  for (int pass = 0; pass < 3; ++pass) {
    ForgetPeak();
    double gradients = 0;
    for (at::Tensor parameter : solver.Parameters()) parameter.mutable_grad().reset();
    const at::Tensor u = State(form).requires_grad_(shape.wants_input_gradient);
    const at::Tensor end = solver.Forward(u);
    const at::Tensor lambda = at::ones_like(end);
    end.backward(lambda, /*retain_graph=*/true);
    for (const at::Tensor& parameter : solver.Parameters())
      gradients += static_cast<double>(parameter.grad().nbytes());
    held = {Live() - before - gradients, Peak() - before - gradients};
  }
  for (at::Tensor parameter : solver.Parameters()) parameter.mutable_grad().reset();
  return held;
}

std::vector<LayerParallelOptions> Solvers() {
  LayerParallelOptions fmg = MakeLayerParallelOptions(3, 2, 2, 2);
  fmg.forward.fmg = fmg.backward.fmg = true;
  LayerParallelOptions recomputed = MakeLayerParallelOptions(2, 4, 2, 2);
  recomputed.recomputes = [](std::int64_t step) { return step % 3 == 0; };
  LayerParallelOptions relaxed = MakeLayerParallelOptions(3, 4, 3, 2);
  relaxed.forward.cf_sweeps = relaxed.backward.cf_sweeps = {1};
  return {MakeLayerParallelOptions(1, 2, 1, 1),
          MakeLayerParallelOptions(2, 4, 1, 1),
          MakeLayerParallelOptions(2, 8, 2, 1),
          MakeLayerParallelOptions(3, 4, 3, 3),
          fmg,
          recomputed,
          relaxed};
}

TEST(LayerParallelMemory, IsTheFormula) {
  for (const odenet::Form form : {odenet::Form::kDense, odenet::Form::kConv2d}) {
    odenet::OdeNet net(Network(form), at::kFloat);
    const Call call = CallOf(*net.blocks()[0], form);
    const double state = static_cast<double>(State(form).nbytes());
    int number = 0;
    for (const LayerParallelOptions& solver : Solvers()) {
      for (const mgrit::Propagation propagation :
           {mgrit::Propagation::kParallel, mgrit::Propagation::kSerial}) {
        const BatchShape shape = {.solver = solver,
                                  .steps = kLayers,
                                  .ranks = World().size(),
                                  .propagation = propagation,
                                  .linearises_ahead = true,
                                  .shares_parameters = false,
                                  .wants_input_gradient = ++number % 2 == 0};
        SCOPED_TRACE(absl::StrCat("solver ", (number + 1) / 2, ", rank ", World().rank()));
        const RankMemory memory = MemoryOf(shape, World().rank());
        const double formula = memory.Bytes(state, call.kept);
        const Held held = Train(net, form, shape);
        // Norms of residuals: a number for each C-point, in memory that doubles, in both solves.
        const double norms = 2 * 8 * (2 * kLayers / 2 + 16);
        ASSERT_LT(norms, state);
        EXPECT_GE(held.behind_backward, formula);
        EXPECT_LE(held.behind_backward, formula + norms);
        // While a call is made the result that it will replace is still there; one that is recomputed has a result and
        // activations of its own.
        const double recomputed = solver.recomputes ? call.kept + state : 0;
        EXPECT_LE(held.most, formula + norms + call.temporary + state + recomputed);
      }
    }
  }
}

// Without replay, from sizes: F-relaxation on level 0, FCF- on level 1, two iterations and more.
TEST(LayerParallelMemory, FallsWithTheRanks) {
  constexpr std::int64_t kSteps = 1024, kFactor = 4;
  for (const int ranks : {1, 2, 4, 64, 256}) {
    const BatchShape shape = {.solver = MakeLayerParallelOptions(3, kFactor, 3, 3),
                              .steps = kSteps,
                              .ranks = ranks,
                              .wants_input_gradient = true};
    std::int64_t own = 0, calls = 0, most_fixed = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankMemory memory = MemoryOf(shape, rank);
      own += memory.own();
      calls += memory.calls;
      most_fixed = std::max(most_fixed, memory.fixed());
      if (kSteps / kFactor / kFactor % ranks != 0) continue;
      EXPECT_EQ(memory.calls * ranks, kSteps + kSteps / kFactor + kSteps / kFactor / kFactor);
    }
    const std::int64_t c = kSteps / kFactor, cc = c / kFactor;
    EXPECT_EQ(own, 2 * (kSteps + c + cc) + 2 * (2 * c + cc) + (c + c + cc)) << ranks;
    EXPECT_EQ(calls, kSteps + c + cc) << ranks;
    EXPECT_LE(most_fixed, 2 * 3 * (1 + 3 + 1) + 4) << ranks;
  }
}

}  // namespace
}  // namespace plait::parity
