// Cells with own kernels against the operator cell in float64, for every kernel table that this CPU can run.
#include "models/gru/cell.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/gru/cpu_cell.h"
#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {
namespace {

struct Sizes {
  std::int64_t batch, input, hidden, layers;
};
constexpr Sizes kSizes[] = {{1, 1, 1, 1},   {7, 9, 5, 2},   {33, 40, 100, 2},
                            {7, 60, 33, 1}, {1, 9, 130, 3}, {33, 1, 16, 3}};

std::vector<at::Tensor> Parameters(const GruConfig& config) {
  std::vector<at::Tensor> parameters;
  const double bound = 1 / std::sqrt(static_cast<double>(config.hidden));
  const auto add = [&](at::IntArrayRef sizes) {
    parameters.push_back(at::zeros(sizes, at::kDouble).uniform_(-bound, bound));
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    add({3 * config.hidden, layer == 0 ? config.input : config.hidden});
    add({3 * config.hidden, config.hidden});
    add({3 * config.hidden});
    add({3 * config.hidden});
  }
  return parameters;
}

std::vector<at::Tensor> To(const std::vector<at::Tensor>& tensors, at::ScalarType dtype) {
  std::vector<at::Tensor> converted;
  for (const at::Tensor& t : tensors) converted.push_back(t.to(dtype));
  return converted;
}

// Everything that a cell computes of two steps, in its own dtype.
struct Computed {
  at::Tensor new_state, lambda, x_gradient;
  std::vector<at::Tensor> gradients;
};

struct Problem {
  Problem(const Sizes& sizes, GruKind kind, GruProducts products)
      : config{sizes.input, sizes.hidden, sizes.layers, kind, products}, parameters(Parameters(config)) {
    x = at::randn({sizes.batch, 2, sizes.input}, at::kDouble).to(at::kFloat).to(at::kDouble);
    h = at::randn({sizes.layers, sizes.batch, sizes.hidden}, at::kDouble)
            .tanh()
            .to(at::kFloat)
            .to(at::kDouble);
    lambda = at::randn(h.sizes(), at::kDouble).to(at::kFloat).to(at::kDouble);
    parameters = To(To(parameters, at::kFloat), at::kDouble);
  }

  Computed Run(GruCell& cell, GruStepSize size) const {
    const at::ScalarType dtype = c10::typeMetaToScalarType(cell.options().dtype());
    const std::int64_t batch = x.size(0);
    const std::vector<at::Tensor> converted = To(parameters, dtype);
    cell.SetParameters(converted);
    const GruInputs inputs = cell.PrepareInputs(x.to(dtype));
    std::vector<at::Tensor> states = {h.to(dtype), cell.NewState(batch), cell.NewState(batch)};
    std::vector<at::Tensor> saved = {cell.NewSaved(batch), cell.NewSaved(batch)};
    std::vector<at::Tensor> gates = {cell.NewGateGradients(batch), cell.NewGateGradients(batch)};
    Computed computed;
    for (int i = 0; i < 2; ++i) cell.Step(size, inputs, i, states[i], states[i + 1], &saved[i]);
    computed.new_state = states[2];
    computed.lambda = at::zeros_like(states[0]);
    at::Tensor middle = at::zeros_like(states[0]);
    cell.StepAdjoint(size, saved[1], states[1], lambda.to(dtype), middle, &gates[1]);
    cell.StepAdjoint(size, saved[0], states[0], middle, computed.lambda, &gates[0]);
    for (const at::Tensor& p : converted) computed.gradients.push_back(at::zeros_like(p));
    cell.AddWeightGradients(inputs,
                            {{&gates[1], &states[1], &states[2], 1}, {&gates[0], &states[0], &states[1], 0}},
                            computed.gradients);
    computed.x_gradient = at::zeros({batch, 2, config.input}, dtype);
    for (int i = 0; i < 2; ++i) cell.AddInputGradient(gates[i], i, computed.x_gradient);
    return computed;
  }

  GruConfig config;
  std::vector<at::Tensor> parameters;
  at::Tensor x, h, lambda;
};

double MaxAbs(const at::Tensor& t) { return t.abs().max().item<double>(); }

// Rounding of a chain of n multiply-adds is below lambda sqrt(n) u sum |terms| but with probability 2 n
// exp(-lambda^2 / 2) (Higham and Mary, SIAM J. Sci. Comput. 41, 2019, theorem 2.4, for independent rounding
// errors): lambda = 8 makes that 1e-14 n. u = eps / 2, and sums of |terms| are below 4 times the largest
// result or 4 here. `flips`: errors of another kind, of results of size 1.
void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, double length, double eps,
                 const char* what, double flips) {
  const double tolerance = (16 * std::sqrt(length) * eps + flips) * std::max(1.0, MaxAbs(expected));
  EXPECT_LE(MaxAbs(actual.to(at::kDouble) - expected), tolerance) << what;
}

void ExpectClose(const Computed& actual, const Computed& expected, const Sizes& sizes, double eps,
                 double flips = 0) {
  // Chains: products along layers and two steps; then the batch in the weight gradients.
  const double chain = static_cast<double>(2 * sizes.layers * (3 * sizes.hidden + sizes.input + 16));
  ExpectClose(actual.new_state, expected.new_state, chain, eps, "new_state", flips);
  ExpectClose(actual.lambda, expected.lambda, chain, eps, "lambda_in", flips);
  ExpectClose(actual.x_gradient, expected.x_gradient, chain, eps, "x_gradient", flips);
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    SCOPED_TRACE("parameter " + std::to_string(i));
    ExpectClose(actual.gradients[i], expected.gradients[i], chain + 2.0 * static_cast<double>(sizes.batch),
                eps, "weight gradient", flips);
  }
}

template <typename T>
class CellTest : public ::testing::Test {};
using NumberTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CellTest, NumberTypes);

template <typename T>
constexpr at::ScalarType kType = sizeof(T) == 4 ? at::kFloat : at::kDouble;

template <typename T, typename F>
void ForEachProblem(GruProducts products, const F& f) {
  for (const auto* kernels : UsableKernels<T>(products == GruProducts::kBFloat16)) {
    for (const Sizes& sizes : kSizes) {
      for (GruKind kind : {GruKind::kClassic, GruKind::kImplicit}) {
        SCOPED_TRACE(std::string(kernels->name) + " batch " + std::to_string(sizes.batch) + " input " +
                     std::to_string(sizes.input) + " hidden " + std::to_string(sizes.hidden) + " layers " +
                     std::to_string(sizes.layers) + (kind == GruKind::kClassic ? " classic" : " implicit"));
        f(kernels, sizes, Problem(sizes, kind, products));
      }
    }
  }
}

TYPED_TEST(CellTest, KernelsAgreeWithOperatorsInFloat64) {
  using T = TypeParam;
  ForEachProblem<T>(GruProducts::kFull, [](const auto* kernels, const Sizes& sizes, const Problem& problem) {
    for (const GruStepSize size :
         {GruStepSize(1), GruStepSize(0.25), GruStepSize(4), GruStepSize(1, 4), GruStepSize(0.5, 7)}) {
      const auto cell = NewCpuGruCell<T>(problem.config, kType<T>, kernels);
      const auto oracle = NewOperatorGruCell(problem.config, at::kDouble);
      // An explicit step with dt > 1 multiplies rounding by up to |1 - dt| in each of two steps; a power
      // multiplies that of its base by its exponent.
      ExpectClose(problem.Run(*cell, size), problem.Run(*oracle, size), sizes,
                  std::max(1.0, size.dt * size.dt) * size.repeats * std::numeric_limits<T>::epsilon());
    }
  });
}

TYPED_TEST(CellTest, BFloat16ProductsAgreeWithOperators) {
  using T = TypeParam;
  ForEachProblem<T>(
      GruProducts::kBFloat16, [](const auto* kernels, const Sizes& sizes, const Problem& problem) {
        const auto cell = NewCpuGruCell<T>(problem.config, kType<T>, kernels);
        const auto oracle = NewOperatorGruCell(problem.config, at::kDouble);
        const Computed actual = problem.Run(*cell, 1.0);
        const Computed expected = problem.Run(*oracle, 1.0);
        // A factor that rounding in T moves across a tie rounds to the other bfloat16 neighbour, and its
        // product with a number of size 1 or less moves by 2^-8. In float32 that happens to one factor in
        // some 10^4 (2^-24 against 2^-9, and roundings before), so that of the up to 2500 behind a result
        // four are not to be expected; in float64 to none.
        const double flips = sizeof(T) == 4 ? 4 * 0x1p-8 : 0;
        ExpectClose(actual, expected, sizes, std::numeric_limits<T>::epsilon(), flips);
        // And the products are rounded: full ones differ by a noticeable part of 2^-8, where there are enough
        // of them.
        if (sizes.hidden == 1) return;
        GruConfig full = problem.config;
        full.products = GruProducts::kFull;
        const auto unrounded = NewOperatorGruCell(full, at::kDouble);
        EXPECT_GT(MaxAbs(actual.new_state.to(at::kDouble) - problem.Run(*unrounded, 1.0).new_state),
                  std::ldexp(1.0, -16));
      });
}

TEST(AdjointTest, IsTheTransposeOfTheDerivative) {
  // <lambda, (Phi(h + e v) - Phi(h - e v)) / 2e> = <adjoint(lambda), v> up to e^2 |third derivative| and eps
  // / e: with e = 1e-4 about 1e-8 and 1e-11 times the number of entries' root, in float64.
  using T = double;
  ForEachProblem<T>(GruProducts::kFull, [](const auto* kernels, const Sizes& sizes, const Problem& problem) {
    const double e = 1e-4;
    const GruStepSize size(0.5, 1 + static_cast<int>(sizes.hidden) % 3);
    const auto cell = NewCpuGruCell<T>(problem.config, kType<T>, kernels);
    cell->SetParameters(To(problem.parameters, kType<T>));
    const GruInputs inputs = cell->PrepareInputs(problem.x.to(kType<T>));
    const at::Tensor h = problem.h.to(kType<T>), lambda = problem.lambda.to(kType<T>);
    const at::Tensor v = at::randn(h.sizes(), kType<T>);
    at::Tensor saved = cell->NewSaved(sizes.batch), next = cell->NewState(sizes.batch);
    at::Tensor plus = cell->NewState(sizes.batch), minus = cell->NewState(sizes.batch);
    at::Tensor pulled_back = cell->NewState(sizes.batch);
    cell->Step(size, inputs, 1, h, next, &saved);
    cell->Step(size, inputs, 1, h + e * v, plus, nullptr);
    cell->Step(size, inputs, 1, h - e * v, minus, nullptr);
    cell->StepAdjoint(size, saved, h, lambda, pulled_back, nullptr);
    const double pushed = (lambda * (plus - minus)).sum().item<double>() / (2 * e);
    const double pulled = (pulled_back * v).sum().item<double>();
    EXPECT_NEAR(pushed, pulled, 1e-7 * std::sqrt(static_cast<double>(h.numel())));
  });
}

// With weights that ignore state and input, gates do stand still, and repeats are steps.
TEST(StepSizeTest, RepeatsAreStepsOfFrozenGates) {
  for (GruKind kind : {GruKind::kClassic, GruKind::kImplicit}) {
    const auto cell = NewGruCell({.input = 2, .hidden = 5, .layers = 1, .kind = kind}, at::kDouble);
    cell->SetParameters({at::zeros({15, 2}, at::kDouble), at::zeros({15, 5}, at::kDouble),
                         at::randn({15}, at::kDouble), at::randn({15}, at::kDouble)});
    const GruInputs inputs = cell->PrepareInputs(at::zeros({3, 1, 2}, at::kDouble));
    const at::Tensor h = at::randn({1, 3, 5}, at::kDouble);
    at::Tensor once = cell->NewState(3), from = h.clone(), to = cell->NewState(3);
    cell->Step({0.7, 6}, inputs, 0, h, once, nullptr);
    for (int i = 0; i < 6; ++i) {
      cell->Step(0.7, inputs, 0, from, to, nullptr);
      std::swap(from, to);
    }
    EXPECT_LE(MaxAbs(once - from), 6 * 4 * std::numeric_limits<double>::epsilon() * std::max(1.0, MaxAbs(h)));
  }
}

TYPED_TEST(CellTest, SavingAndWorkInPlaceChangeNoBits) {
  using T = TypeParam;
  ForEachProblem<T>(GruProducts::kFull, [](const auto* kernels, const Sizes& sizes, const Problem& problem) {
    const auto cell = NewCpuGruCell<T>(problem.config, kType<T>, kernels);
    cell->SetParameters(To(problem.parameters, kType<T>));
    const GruInputs inputs = cell->PrepareInputs(problem.x.to(kType<T>));
    const at::Tensor h = problem.h.to(kType<T>);
    at::Tensor saved = cell->NewSaved(sizes.batch);
    at::Tensor with = cell->NewState(sizes.batch), without = cell->NewState(sizes.batch);
    cell->Step(0.5, inputs, 1, h, with, &saved);
    cell->Step(0.5, inputs, 1, h, without, nullptr);
    EXPECT_TRUE(at::equal(with, without));
    at::Tensor in_place = problem.lambda.to(kType<T>).clone(), apart = cell->NewState(sizes.batch);
    cell->StepAdjoint(0.5, saved, h, in_place, apart, nullptr);
    cell->StepAdjoint(0.5, saved, h, in_place, in_place, nullptr);
    EXPECT_TRUE(at::equal(in_place, apart));
  });
}

TYPED_TEST(CellTest, ASampleHasTheSameBitsInAnyBatchAndLayoutOfX) {
  using T = TypeParam;
  ForEachProblem<T>(GruProducts::kFull, [](const auto* kernels, const Sizes& sizes, const Problem& problem) {
    const auto cell = NewCpuGruCell<T>(problem.config, kType<T>, kernels);
    cell->SetParameters(To(problem.parameters, kType<T>));
    const at::Tensor x = problem.x.to(kType<T>), h = problem.h.to(kType<T>);
    at::Tensor whole = cell->NewState(sizes.batch), one = cell->NewState(1),
               strided = cell->NewState(sizes.batch);
    cell->Step(2.0, cell->PrepareInputs(x), 1, h, whole, nullptr);
    const std::int64_t row = sizes.batch / 2;
    cell->Step(2.0, cell->PrepareInputs(x.narrow(0, row, 1)), 1, h.narrow(1, row, 1).contiguous(), one,
               nullptr);
    EXPECT_TRUE(at::equal(whole.narrow(1, row, 1), one));
    const at::Tensor transposed = x.permute({2, 1, 0}).contiguous().permute({2, 1, 0});
    cell->Step(2.0, cell->PrepareInputs(transposed), 1, h, strided, nullptr);
    EXPECT_TRUE(at::equal(whole, strided));
  });
}

TEST(CellTest, WeightGradientsOfABlockAreOneSumAddedOnce) {
  const GruConfig config{9, 20, 2};
  const auto cell = NewGruCell(config, at::kFloat);
  cell->SetParameters(To(Parameters(config), at::kFloat));
  const GruInputs inputs = cell->PrepareInputs(at::randn({12, 4, 9}));
  at::Tensor h = at::randn({2, 12, 20}), next = cell->NewState(12), saved = cell->NewSaved(12);
  at::Tensor lambda = at::randn({2, 12, 20}), gates = cell->NewGateGradients(12);
  cell->Step(1.0, inputs, 3, h, next, &saved);
  cell->StepAdjoint(1.0, saved, h, lambda, lambda, &gates);
  std::vector<at::Tensor> from_zero, from_one;
  for (const at::Tensor& p : To(Parameters(config), at::kFloat)) {
    from_zero.push_back(at::zeros_like(p));
    from_one.push_back(at::zeros_like(p) + 1);
  }
  const std::vector<GruGradientTerm> terms(2, {&gates, &h, &next, 3});
  cell->AddWeightGradients(inputs, terms, from_zero);
  cell->AddWeightGradients(inputs, terms, from_one);
  for (std::size_t i = 0; i < from_zero.size(); ++i)
    EXPECT_TRUE(at::equal(from_zero[i] + 1, from_one[i])) << i;
}

TEST(CellTest, WrongShapesAreRefused) {
  const GruConfig config{9, 20, 2};
  const auto cell = NewGruCell(config, at::kFloat);
  EXPECT_THROW(cell->SetParameters(To(Parameters({8, 20, 2}), at::kFloat)), c10::Error);
  EXPECT_THROW(cell->SetParameters(Parameters(config)), c10::Error);  // float64
  cell->SetParameters(To(Parameters(config), at::kFloat));
  EXPECT_THROW(cell->PrepareInputs(at::randn({3, 4, 8})), c10::Error);
  const GruInputs inputs = cell->PrepareInputs(at::randn({3, 4, 9}));
  at::Tensor state = cell->NewState(3), small = cell->NewState(2);
  EXPECT_THROW(cell->Step(1.0, inputs, 4, state, state, nullptr), c10::Error);
  EXPECT_THROW(cell->Step(1.0, inputs, 0, small, small, nullptr), c10::Error);
  EXPECT_THROW(NewGruCell(config, at::kHalf), c10::Error);
}

}  // namespace
}  // namespace plait::gru
