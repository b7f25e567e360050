// Batched steps of the GRU against single steps.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "models/gru/layer_parallel/gru_step.h"

namespace plait::gru {
namespace {

using mgrit::StepInterval;
using mgrit::TensorStep;

constexpr std::int64_t kSteps = 24, kBatch = 3, kInput = 5, kHidden = 6;

struct Case {
  GruKind kind;
  std::int64_t layers;
  CoarseStep coarse_step;
  bool kernels;  // of this library, else LibTorch's operators
};

std::unique_ptr<GruStep> NewStep(const Case& c) {
  at::manual_seed(7);
  const GruConfig config = {.input = kInput, .hidden = kHidden, .layers = c.layers, .kind = c.kind};
  std::vector<at::Tensor> parameters;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::int64_t in = layer == 0 ? kInput : kHidden, gates = 3 * kHidden;
    for (const std::vector<std::int64_t>& sizes :
         std::vector<std::vector<std::int64_t>>{{gates, in}, {gates, kHidden}, {gates}, {gates}}) {
      parameters.push_back(at::randn(sizes, at::kDouble) * 0.5);
    }
  }
  auto step = std::make_unique<GruStep>(
      c.kernels ? NewGruCell(config, at::kDouble) : NewOperatorGruCell(config, at::kDouble),
      [parameters] { return parameters; },
      GruStepOptions{.coarse_step = c.coarse_step, .coarse_hold = {2, 4}});
  step->SetOwnSteps(0, kSteps);
  step->SetInput(at::randn({kBatch, kSteps, kInput}, at::kDouble));
  return step;
}

// Every other step of `level`, of `width` fine steps each; two of another length among them.
std::vector<StepInterval> Intervals(int level, std::int64_t width) {
  std::vector<StepInterval> intervals;
  for (std::int64_t first = 0; first + width <= kSteps; first += 2 * width) {
    intervals.push_back(
        {.level = level, .index = first / width, .fine_start = first, .fine_stop = first + width});
    const double dt = first >= 2 * width && first < 6 * width ? 0.25 : 0.5;
    intervals.back().t_start = 0;
    intervals.back().t_stop = dt * static_cast<double>(width);
  }
  return intervals;
}

class GruMany : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<GruStep> step_ = NewStep(GetParam());

  std::vector<at::Tensor> States(std::size_t count) const {
    std::vector<at::Tensor> states;
    for (std::size_t i = 0; i < count; ++i)
      states.push_back(at::randn({GetParam().layers, kBatch, kHidden}, at::kDouble));
    return states;
  }
  std::vector<at::Tensor> Together(const std::vector<StepInterval>& intervals,
                                   const std::vector<at::Tensor>& u) {
    std::vector<at::Tensor> out = States(u.size());
    std::vector<TensorStep::Task> tasks;
    for (std::size_t i = 0; i < u.size(); ++i) tasks.push_back({intervals[i], &u[i], &out[i]});
    step_->ForwardMany(tasks);
    return out;
  }
  // The kernels' bits do not depend on the batch; sums of at most 12 terms of operators do.
  void ExpectSame(const at::Tensor& together, const at::Tensor& alone) const {
    if (GetParam().kernels) {
      EXPECT_TRUE(together.equal(alone));
    } else {
      EXPECT_LE((together - alone).abs().max().item<double>(), 2 * 12 * 0x1p-53 * 100);
    }
  }
};

TEST_P(GruMany, GivesWhatForwardGives) {
  step_->Begin(nullptr, {});
  for (const auto& [level, width] : std::vector<std::pair<int, std::int64_t>>{{0, 1}, {1, 4}, {2, 8}}) {
    const std::vector<StepInterval> intervals = Intervals(level, width);
    const std::vector<at::Tensor> u = States(intervals.size()), together = Together(intervals, u);
    for (std::size_t i = 0; i < u.size(); ++i) {
      at::Tensor alone = at::empty_like(u[i]);
      step_->Forward(intervals[i], u[i], alone);
      ExpectSame(together[i], alone);
    }
  }
}

// The adjoint of a final step uses what its forward step has kept; of another, what it computes itself.
TEST_P(GruMany, KeepsWhatTheAdjointNeeds) {
  std::vector<StepInterval> intervals = Intervals(0, 1);
  for (std::size_t i = 0; i < intervals.size(); i += 2) intervals[i].final = true;
  const std::vector<at::Tensor> u = States(intervals.size()), lambda = States(intervals.size());
  const auto adjoints = [&](const auto& forward) {
    const std::unique_ptr<TensorStep::Tape> tape = step_->NewTape();
    step_->Begin(tape.get(), {});
    forward();
    step_->BeginAdjoint(*tape);
    std::vector<at::Tensor> results = States(u.size());
    for (std::size_t i = 0; i < u.size(); ++i) step_->Adjoint(intervals[i], u[i], lambda[i], results[i]);
    return results;
  };
  const std::vector<at::Tensor> together = adjoints([&] { Together(intervals, u); });
  const std::vector<at::Tensor> alone = adjoints([&] {
    at::Tensor out = at::empty_like(u[0]);
    for (std::size_t i = 0; i < u.size(); ++i) step_->Forward(intervals[i], u[i], out);
  });
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_TRUE(together[i].equal(alone[i])) << i;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const GruKind kind : {GruKind::kClassic, GruKind::kImplicit}) {
    for (const std::int64_t layers : {1, 2}) {
      for (const CoarseStep step : {CoarseStep::kOneStep, CoarseStep::kFrozenGates}) {
        for (const bool kernels : {true, false}) cases.push_back({kind, layers, step, kernels});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cells, GruMany, testing::ValuesIn(Cases()));

}  // namespace
}  // namespace plait::gru
