#include "tools/gru_training/activation_bytes.h"

#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "mgrit/grid.h"
#include "models/gru/parameters.h"

namespace plait::gru_training {
namespace {

// Samples by which slots of private layout are measured: they are rounded up to whole cache lines.
constexpr std::int64_t kSamples = 64;
// First and last states as they enter and leave a solve, and what a step computes with.
constexpr std::int64_t kPassingStates = 8;

// Bytes of a sample.
struct Slots {
  std::int64_t input = 0;        // of a step
  std::int64_t input_gates = 0;  // of a step, where they are formed beforehand
  std::int64_t state = 0, saved = 0, gates = 0;
};

std::int64_t BytesOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) / kSamples : 0;
}

Slots SlotsOf(const gru::GruConfig& config, const at::TensorOptions& options) {
  const std::unique_ptr<gru::GruCell> cell = gru::NewGruCell(config, options);
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& p : gru::NewGruParameters(config, options.device(at::kMeta))->parameters()) {
    zeros.push_back(at::zeros(p.sizes(), options));
  }
  cell->SetParameters(zeros);
  const at::Tensor x = at::zeros({kSamples, 1, config.input}, options);
  return {.input = BytesOf(x),
          .input_gates = BytesOf(cell->PrepareInputs(x).gates),
          .state = BytesOf(cell->NewState(kSamples)),
          .saved = BytesOf(cell->NewSaved(kSamples)),
          .gates = BytesOf(cell->NewGateGradients(kSamples))};
}

// States of all steps and what their adjoints need; gate gradients of two steps and adjoints. The last state is
// returned as a copy.
ActivationBytes Serial(const Slots& slots, std::int64_t steps) {
  const std::int64_t inputs = steps * (slots.input + slots.input_gates);
  return {.training = inputs + (steps + 4) * slots.state + steps * slots.saved + 2 * slots.gates,
          .evaluation = inputs + 4 * slots.state};
}

// States of one solve: those of each point, on coarse levels the right-hand sides of this cycle and the one
// before, and per level two for scratch, a residual, and a message.
std::int64_t StatesOfSolve(const mgrit::Grid& grid) {
  std::int64_t states = 0;
  for (int level = 0; level < grid.levels(); ++level) {
    const mgrit::GridLevel& shape = grid.level(level);
    if (shape.empty()) continue;
    const std::int64_t own = shape.last - shape.first;
    states += own + 1 + (level > 0 ? 2 * own : 0) + 3 + (shape.right_rank >= 0 ? 1 : 0);
  }
  return states;
}

// What is kept of the substeps of coarse steps where they are linearised.
std::int64_t CoarseSlotBytes(const mgrit::Grid& grid, const gru::GruStepOptions& options,
                             const Slots& slots) {
  std::int64_t bytes = 0;
  for (int level = 1; level < grid.levels(); ++level) {
    const mgrit::GridLevel& shape = grid.level(level);
    const std::int64_t substeps = gru::SubstepsOf(options, level, shape.stride);
    bytes += (shape.last - shape.first) * (substeps * slots.saved + (substeps - 1) * slots.state);
  }
  return bytes;
}

ActivationBytes LayerParallel(const GruSettings& s, const Slots& slots, int rank, int ranks) {
  const mgrit::LayerParallelOptions options = s.lp.Options();
  const auto partition = mgrit::Partition::OfWholeIntervals(s.sequence_length, ranks, options.forward);
  const mgrit::TimeGrid time = {.steps = s.sequence_length};
  const mgrit::Grid forward(time, options.forward, partition, rank);
  const mgrit::Grid backward(time, options.backward, partition.Mirrored(), rank);
  const std::int64_t own = forward.level(0).last - forward.level(0).first;
  // The whole input, while the step still has that of the pass before.
  const std::int64_t evaluation = 2 * s.sequence_length * slots.input + own * slots.input_gates +
                                  (StatesOfSolve(forward) + kPassingStates) * slots.state;
  const std::int64_t adjoint = (StatesOfSolve(backward) + kPassingStates) * slots.state +
                               own * (slots.saved + slots.gates) +
                               CoarseSlotBytes(forward, s.StepOptions(), slots);
  return {.training = evaluation + adjoint, .evaluation = evaluation};
}

}  // namespace

ActivationBytes ActivationBytesPerSample(const GruSettings& settings, const gru::GruConfig& cell,
                                         const at::TensorOptions& options, int lp_ranks) {
  const Slots slots = SlotsOf(cell, options);
  if (!settings.lp.Solves(lp_ranks)) return Serial(slots, settings.sequence_length);
  ActivationBytes most;
  for (int rank = 0; rank < lp_ranks; ++rank) {
    const ActivationBytes bytes = LayerParallel(settings, slots, rank, lp_ranks);
    if (bytes.training > most.training) most = bytes;
  }
  return most;
}

}  // namespace plait::gru_training
