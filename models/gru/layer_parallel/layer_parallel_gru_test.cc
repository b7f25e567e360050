// The GRU solved layer-parallel against the serial module on the same parameters.
#include "models/gru/layer_parallel/layer_parallel_gru.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/testing/world.h"
#include "models/gru/serial.h"

namespace plait::gru {
namespace {

constexpr std::int64_t kSteps = 22;  // not divided by the factor, nor by the ranks
constexpr std::int64_t kInput = 3;
constexpr std::int64_t kHidden = 5;
constexpr double kFinalTime = 22.0 * 0.75;

// Numbers in [-1, 1) from a recurrence: the same on every rank.
at::Tensor Numbers(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = static_cast<double>(seed >> 11) * 0x1p-52 - 1.0;
  }
  return tensor;
}

struct Case {
  GruKind kind = GruKind::kImplicit;
  std::int64_t layers = 2;
  GruStepOptions step = {};

  GruConfig config() const { return {.input = kInput, .hidden = kHidden, .layers = layers, .kind = kind}; }
  std::string name() const {
    return std::string(kind == GruKind::kImplicit ? "implicit" : "classic") + ", layers " +
           std::to_string(layers) + ", step " + std::to_string(static_cast<int>(step.coarse_step)) +
           ", hold " + std::to_string(step.coarse_hold[0]);
  }
};

std::vector<Case> AllCases() {
  std::vector<GruStepOptions> steps;
  for (const CoarseStep step : {CoarseStep::kOneStep, CoarseStep::kFrozenGates}) {
    // One substep; substeps of 2 steps on level 1 and, unevenly, 5, 5 and 6 on level 2.
    for (const std::vector<int>& hold : {std::vector<int>{0}, {2, 6}}) steps.push_back({step, hold});
  }
  std::vector<Case> cases;
  for (const GruKind kind : {GruKind::kImplicit, GruKind::kClassic}) {
    for (const std::int64_t layers : {1, 2}) {
      for (const GruStepOptions& step : steps) cases.push_back({kind, layers, step});
    }
  }
  return cases;
}

std::vector<at::Tensor> Parameters(const Case& c) {
  std::vector<at::Tensor> all;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::int64_t width = layer == 0 ? kInput : kHidden;
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
             {3 * kHidden, width}, {3 * kHidden, kHidden}, {3 * kHidden}, {3 * kHidden}}) {
      all.push_back((Numbers(sizes, 100 + all.size()) * 0.6).requires_grad_(true));
    }
  }
  return all;
}

// The state after the last step and the gradients of a loss by x, the first state and every parameter.
struct Result {
  at::Tensor state;
  std::vector<at::Tensor> gradients;
};

template <typename Forward>
Result Differentiated(const std::vector<at::Tensor>& parameters, std::int64_t layers, std::int64_t batch,
                      const Forward& forward, std::uint64_t seed = 7) {
  at::Tensor x = Numbers({batch, kSteps, kInput}, seed).requires_grad_(true);
  at::Tensor first = Numbers({layers, batch, kHidden}, 8).requires_grad_(true);
  for (const at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
  const at::Tensor state = forward(x, first);
  (state * Numbers({layers, batch, kHidden}, 9)).sum().backward();
  Result result{state.detach().clone(), {x.grad().clone(), first.grad().clone()}};
  for (const at::Tensor& parameter : parameters) result.gradients.push_back(parameter.grad().clone());
  return result;
}

// The reference; models/gru/serial_test.cc tests it against autograd.
Result Serial(const Case& c, const std::vector<at::Tensor>& parameters, std::int64_t batch) {
  SerialGru serial({.cell = c.config(), .final_time = kFinalTime}, at::kDouble);
  {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> own = serial.parameters();
    for (std::size_t i = 0; i < own.size(); ++i) at::Tensor(own[i]).copy_(parameters[i]);
  }
  return Differentiated(
      serial.parameters(), c.layers, batch,
      [&](const at::Tensor& x, const at::Tensor& first) { return serial.Forward(x, first).state; });
}

mgrit::LayerParallelOptions Options(int levels, int iterations) {
  return mgrit::MakeLayerParallelOptions(levels, 4, iterations, iterations);
}

LayerParallelGru Parallel(const Case& c, const std::vector<at::Tensor>& parameters,
                          const comm::Communicator& ranks, const mgrit::LayerParallelOptions& options) {
  return LayerParallelGru([parameters] { return parameters; }, c.config(), at::kDouble, ranks, kSteps,
                          kFinalTime, options, c.step);
}

// Sums of at most kSteps * batch products per number, each right to a rounding, through kSteps steps.
void ExpectNear(const at::Tensor& value, const at::Tensor& expected, const std::string& what) {
  const double norm = expected.norm().item<double>();
  const double tolerance = 1e-12 * (1.0 + norm);
  EXPECT_LE((value - expected).norm().item<double>(), tolerance) << what << ", norm " << norm;
}

TEST(LayerParallelGru, ConvergedEqualsSerial) {
  for (const Case& c : AllCases()) {
    const std::vector<at::Tensor> parameters = Parameters(c);
    // Two levels are exact after as many iterations as there are C-intervals; three levels need no more than
    // steps.
    for (const int levels : {1, 2, 3}) {
      LayerParallelGru parallel =
          Parallel(c, parameters, comm::testing::World(), Options(levels, levels == 3 ? 12 : kSteps / 4 + 1));
      for (const std::int64_t batch : {2, 5, 3}) {
        SCOPED_TRACE(c.name() + ", levels " + std::to_string(levels) + ", batch " + std::to_string(batch));
        const Result result = Differentiated(
            parameters, c.layers, batch,
            [&](const at::Tensor& x, const at::Tensor& first) { return parallel.Forward(x, first); });
        const Result serial = Serial(c, parameters, batch);
        ExpectNear(result.state, serial.state, "state");
        ASSERT_EQ(result.gradients.size(), serial.gradients.size());
        for (std::size_t i = 0; i < serial.gradients.size(); ++i) {
          ExpectNear(result.gradients[i], serial.gradients[i], "gradient " + std::to_string(i));
        }
      }
    }
  }
}

TEST(LayerParallelGru, FewIterationsAreTheSameBitsOnAnyRanks) {
  for (const Case& c : AllCases()) {
    SCOPED_TRACE(c.name());
    const std::vector<at::Tensor> parameters = Parameters(c);
    const auto last_of = [&](const comm::Communicator& ranks,
                             const std::vector<std::pair<std::int64_t, std::uint64_t>>& batches) {
      LayerParallelGru parallel = Parallel(c, parameters, ranks, Options(3, 1));
      const auto forward = [&](const at::Tensor& x, const at::Tensor& first) {
        return parallel.Forward(x, first);
      };
      Result result;
      for (const auto& [batch, seed] : batches) {
        result = Differentiated(parameters, c.layers, batch, forward, seed);
      }
      return result;
    };
    const Result alone = last_of(comm::Communicator::Self(), {{4, 7}});
    // Nothing of the batches before is left in the result, though it is far from converged.
    const Result result = last_of(comm::testing::World(), {{3, 7}, {4, 5}, {4, 7}});
    EXPECT_TRUE(at::equal(result.state, alone.state));
    for (std::size_t i = 0; i < alone.gradients.size(); ++i) {
      EXPECT_TRUE(at::equal(result.gradients[i], alone.gradients[i])) << "gradient " << i;
    }
    EXPECT_GT((result.state - Serial(c, parameters, 4).state).norm().item<double>(), 1e-8);
  }
}

// A coarse step in substeps of one step is the fine steps themselves: one iteration is exact, on all levels.
TEST(LayerParallelGru, SubstepsOfOneStepAreExactAtOnce) {
  for (const CoarseStep step : {CoarseStep::kOneStep, CoarseStep::kFrozenGates}) {
    const Case c = {.step = {step, {1}}};
    const std::vector<at::Tensor> parameters = Parameters(c);
    LayerParallelGru parallel = Parallel(c, parameters, comm::testing::World(), Options(3, 1));
    const Result result = Differentiated(
        parameters, c.layers, 3,
        [&](const at::Tensor& x, const at::Tensor& first) { return parallel.Forward(x, first); });
    const Result serial = Serial(c, parameters, 3);
    ExpectNear(result.state, serial.state, "state");
    for (std::size_t i = 0; i < serial.gradients.size(); ++i) {
      ExpectNear(result.gradients[i], serial.gradients[i], "gradient " + std::to_string(i));
    }
  }
}

// x, the first state and the weights of the loss of one pass; `which` makes them different.
struct Pass {
  Pass(const Case& c, int which, std::int64_t batch)
      : x(Numbers({batch, kSteps, kInput}, 20 + which).requires_grad_(true)),
        first(Numbers({c.layers, batch, kHidden}, 30 + which).requires_grad_(true)),
        weights(Numbers({c.layers, batch, kHidden}, 40 + which)) {}
  std::vector<at::Tensor> GradientsOf(const at::Tensor& state,
                                      const std::vector<at::Tensor>& parameters) const {
    std::vector<at::Tensor> leaves = {x, first};
    leaves.insert(leaves.end(), parameters.begin(), parameters.end());
    return torch::autograd::grad({(state * weights).sum()}, leaves);
  }
  at::Tensor x, first, weights;
};

// Every recorded pass has its own inputs, states and activations, whatever runs before its backward.
TEST(LayerParallelGru, PassesInFlightDoNotDisturbEachOther) {
  for (const std::int64_t other_batch : {3, 5}) {
    for (const int goes_first : {0, 1}) {
      const Case c;
      const std::vector<at::Tensor> parameters = Parameters(c);
      LayerParallelGru parallel = Parallel(c, parameters, comm::testing::World(), Options(3, 12));
      SerialGru serial({.cell = c.config(), .final_time = kFinalTime}, at::kDouble);
      {
        const at::NoGradGuard no_grad;
        const std::vector<at::Tensor> own = serial.parameters();
        for (std::size_t i = 0; i < own.size(); ++i) at::Tensor(own[i]).copy_(parameters[i]);
      }
      const Pass passes[] = {Pass(c, 0, 3), Pass(c, 1, other_batch), Pass(c, 2, 4)};
      const at::Tensor states[] = {parallel.Forward(passes[0].x, passes[0].first),
                                   parallel.Forward(passes[1].x, passes[1].first)};
      {
        const at::NoGradGuard no_grad;
        ExpectNear(parallel.Forward(passes[2].x, passes[2].first),
                   serial.Forward(passes[2].x, passes[2].first).state, "state without gradients");
      }
      for (const int which : {goes_first, 1 - goes_first}) {
        const Pass& pass = passes[which];
        const auto actual = pass.GradientsOf(states[which], parameters);
        const auto expected = pass.GradientsOf(serial.Forward(pass.x, pass.first).state, serial.parameters());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          ExpectNear(actual[i], expected[i],
                     "pass " + std::to_string(which) + ", gradient " + std::to_string(i));
        }
      }
    }
  }
}

TEST(LayerParallelGru, OtherShapesThanTheSolversAreRefused) {
  const Case c;
  const std::vector<at::Tensor> parameters = Parameters(c);
  LayerParallelGru parallel = Parallel(c, parameters, comm::testing::World(), Options(2, 1));
  const auto error = [&](const at::Tensor& x, const at::Tensor& first) {
    try {
      parallel.Forward(x, first);
    } catch (const c10::Error& e) {
      return std::string(e.what_without_backtrace());
    }
    return std::string();
  };
  for (const std::int64_t steps : {kSteps - 1, kSteps + 1}) {
    const std::string text = error(Numbers({2, steps, kInput}, 1), {});
    EXPECT_NE(text.find("set up for sequences of 22 steps"), std::string::npos) << text;
  }
  EXPECT_NE(error(Numbers({2, kSteps, kInput + 1}, 1), {}).find("x must be"), std::string::npos);
  EXPECT_NE(error(Numbers({2, kSteps, kInput}, 1), Numbers({1, 2, kHidden}, 1)).find("initial must be"),
            std::string::npos);
}

// Records for how many steps the cell prepared inputs.
class NotingCell final : public GruCell {
 public:
  NotingCell(const GruConfig& config, std::int64_t& prepared)
      : GruCell(config, at::kDouble), cell_(NewGruCell(config, at::kDouble)), prepared_(prepared) {}
  void SetParameters(at::TensorList parameters) override { cell_->SetParameters(parameters); }
  GruInputs PrepareInputs(const at::Tensor& x, std::int64_t first, std::int64_t count) override {
    GruInputs inputs = cell_->PrepareInputs(x, first, count);
    prepared_ = inputs.gates.size(0);
    return inputs;
  }
  at::Tensor NewSaved(std::int64_t batch) const override { return cell_->NewSaved(batch); }
  at::Tensor NewGateGradients(std::int64_t batch) const override { return cell_->NewGateGradients(batch); }
  void Step(GruStepSize size, const GruInputs& inputs, std::int64_t step, const at::Tensor& state,
            at::Tensor& new_state, at::Tensor* saved) override {
    cell_->Step(size, inputs, step, state, new_state, saved);
  }
  void StepAdjoint(GruStepSize size, const at::Tensor& saved, const at::Tensor& state,
                   const at::Tensor& lambda_out, at::Tensor& lambda_in, at::Tensor* gate_gradients) override {
    cell_->StepAdjoint(size, saved, state, lambda_out, lambda_in, gate_gradients);
  }
  void AddWeightGradients(const GruInputs& inputs, const std::vector<GruGradientTerm>& terms,
                          at::TensorList gradients) override {
    cell_->AddWeightGradients(inputs, terms, gradients);
  }
  void AddInputGradient(const at::Tensor& gate_gradients, std::int64_t step,
                        at::Tensor& x_gradient) override {
    cell_->AddInputGradient(gate_gradients, step, x_gradient);
  }

 private:
  std::unique_ptr<GruCell> cell_;
  std::int64_t& prepared_;
};

// Wide inputs, whose products with the weights are formed once: each rank forms those of its own steps, and
// the bits are the same although coarse steps reach across.
TEST(LayerParallelGru, ProductsOfInputsAreDistributed) {
  const GruConfig config = {.input = 64, .hidden = kHidden, .layers = 1};
  std::vector<at::Tensor> parameters;
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {3 * kHidden, 64}, {3 * kHidden, kHidden}, {3 * kHidden}, {3 * kHidden}}) {
    parameters.push_back((Numbers(sizes, 100 + parameters.size()) * 0.3).requires_grad_(true));
  }
  const at::Tensor x = Numbers({3, kSteps, 64}, 7);
  const auto solve = [&](const comm::Communicator& ranks) {
    std::int64_t prepared = -1;
    const auto step = std::make_shared<GruStep>(
        std::make_unique<NotingCell>(config, prepared), [&] { return parameters; }, GruStepOptions());
    mgrit::LayerParallel net(ranks, step, kSteps, kFinalTime, Options(3, 1));
    step->SetInput(x);
    EXPECT_EQ(prepared, net.last_step() - net.first_step());
    const at::Tensor state = net.Forward(at::zeros({1, 3, kHidden}, at::kDouble));
    std::vector<at::Tensor> result = torch::autograd::grad({state.sum()}, parameters);
    result.push_back(state.detach());
    return result;
  };
  const auto alone = solve(comm::Communicator::Self());
  const auto together = solve(comm::testing::World());
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(together[i], alone[i])) << i;
}

TEST(LayerParallelGru, NewParametersAreSeenAtTheNextForward) {
  const Case c;
  std::vector<at::Tensor> parameters = Parameters(c);
  LayerParallelGru parallel = Parallel(c, parameters, comm::testing::World(), Options(2, kSteps / 4 + 1));
  const auto forward = [&](const at::Tensor& x, const at::Tensor& first) {
    return parallel.Forward(x, first);
  };
  const at::Tensor before = Differentiated(parameters, c.layers, 3, forward).state;
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters) parameter.mul_(0.5);
  }
  const at::Tensor after = Differentiated(parameters, c.layers, 3, forward).state;
  EXPECT_GT((after - before).norm().item<double>(), 1e-3);
  ExpectNear(after, Serial(c, parameters, 3).state, "state");
}

}  // namespace
}  // namespace plait::gru
