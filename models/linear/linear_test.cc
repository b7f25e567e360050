// Linear layers on own products against float64 products of LibTorch: values and gradients.
#include "models/linear/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/linear/multiply.h"

namespace plait::linear {
namespace {

struct Sizes {
  std::int64_t rows, in, out;
};

// Values, then gradients of x, weight, bias and residual.
using Results = std::vector<at::Tensor>;

struct Inputs {
  at::Tensor x, weight, bias, residual, of_out;
};

Inputs Draw(const Sizes& s, at::ScalarType type) {
  const auto draw = [&](at::IntArrayRef shape) { return at::randn(shape, at::kDouble).to(type); };
  return {draw({s.rows, s.in}), draw({s.out, s.in}), draw({s.out}), draw({s.rows, s.out}),
          draw({s.rows, s.out})};
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) { return a.equal(b); }

template <typename Layer>
Results RunLayer(const Inputs& inputs, at::ScalarType type, const Layer& layer) {
  const auto leaf = [&](const at::Tensor& t) { return t.to(type).detach().clone().requires_grad_(); };
  const at::Tensor x = leaf(inputs.x), weight = leaf(inputs.weight), bias = leaf(inputs.bias),
                   residual = leaf(inputs.residual);
  const at::Tensor out = layer(x, weight, bias, residual);
  Results results =
      torch::autograd::grad({out}, {x, weight, bias, residual}, {inputs.of_out.to(type)}, {}, false, true);
  results.insert(results.begin(), out.detach());
  return results;
}

// Of a sum of `terms` products of standard normal numbers with unit roundoff u: its rounding is below
// (terms + 2) u sum |a b|, and E |a b| = 2 / pi < 1, so 2 terms is a bound for the sum with room for its
// spread; in bfloat16 the result's own rounding, u_16 |value|, is added.
void ExpectNear(const at::Tensor& actual, const at::Tensor& exact, double terms, const std::string& what) {
  ASSERT_EQ(actual.sizes(), exact.sizes()) << what;
  const double u = std::ldexp(1.0, -24);
  const double own = actual.scalar_type() == at::kBFloat16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -24);
  const at::Tensor bound = exact.abs() * own + (terms + 2) * u * 2 * (terms + 2);
  const at::Tensor excess = ((actual.to(at::kDouble) - exact).abs() / bound).max();
  EXPECT_LE(excess.item<double>(), 1.0) << what;
}

class LinearTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(LinearTest, ValuesAndGradientsAreThoseOfFloat64) {
  at::manual_seed(7);
  // Odd numbers, one vector, several panels, more than one chunk of k forward (4099) and backward (2051).
  std::vector<Sizes> all = {{32, 1, 1},    {33, 7, 5},     {45, 16, 65},   {64, 128, 384},
                            {77, 31, 129}, {32, 4099, 33}, {2051, 15, 31}, {1100, 3, 600}};
  // Every number of rows that the last tile may have, for panels of one vector and of two.
  for (std::int64_t rows = kFewestRows; rows < kFewestRows + 14; ++rows) {
    all.push_back({rows, 6, 16});
    all.push_back({rows, 6, 25});
  }
  for (const Sizes& s : all) {
    const std::string what =
        std::to_string(s.rows) + " x " + std::to_string(s.in) + " x " + std::to_string(s.out);
    const Inputs inputs = Draw(s, GetParam());
    const auto own = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, const at::Tensor& r) {
      return AddLinear(r, x, w, b);
    };
    const auto exact = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b,
                          const at::Tensor& r) { return at::linear(x, w, b) + r; };
    const Results actual = RunLayer(inputs, GetParam(), own), expected = RunLayer(inputs, at::kDouble, exact);
    ExpectNear(actual[0], expected[0], static_cast<double>(s.in), what + ": values");
    ExpectNear(actual[1], expected[1], static_cast<double>(s.out), what + ": gradient of x");
    ExpectNear(actual[2], expected[2], static_cast<double>(s.rows), what + ": gradient of the weight");
    EXPECT_TRUE(SameBits(actual[4], inputs.of_out)) << what << ": gradient of the residual";
    const double rows = static_cast<double>(s.rows);
    ExpectNear(actual[3], expected[3], rows, what + ": gradient of the bias");
  }
}

// Without bias or residual, and where only one input has a gradient.
TEST_P(LinearTest, InputsMayBeMissing) {
  const Inputs inputs = Draw({40, 24, 48}, GetParam());
  const at::Tensor exact = at::linear(inputs.x.to(at::kDouble), inputs.weight.to(at::kDouble));
  ExpectNear(Linear(inputs.x, inputs.weight), exact, 24, "no bias");
  const at::Tensor with_bias = Linear(inputs.x, inputs.weight, inputs.bias);
  ExpectNear(with_bias, exact + inputs.bias.to(at::kDouble), 24, "bias");
  const at::Tensor x = inputs.x.clone().requires_grad_();
  const at::Tensor out = AddLinear(inputs.residual, x, inputs.weight);
  const auto gradients = torch::autograd::grad({out}, {x}, {inputs.of_out});
  ExpectNear(gradients[0], at::matmul(inputs.of_out.to(at::kDouble), inputs.weight.to(at::kDouble)), 48,
             "gradient of x alone");
  const at::Tensor residual = inputs.residual.clone().requires_grad_();
  const at::Tensor sum = AddLinear(residual, inputs.x, inputs.weight);
  EXPECT_TRUE(SameBits(torch::autograd::grad({sum}, {residual}, {inputs.of_out})[0], inputs.of_out));
}

// Views: a transposed x, a weight that is part of a wider one, an expanded gradient.
TEST_P(LinearTest, OperandsMayBeViews) {
  const Inputs inputs = Draw({96, 40, 50}, GetParam());
  const at::Tensor exact = at::linear(inputs.x.to(at::kDouble), inputs.weight.to(at::kDouble));
  const at::Tensor apart = inputs.x.t().contiguous().t();
  ExpectNear(Linear(apart, inputs.weight), exact, 40, "transposed x");
  const at::Tensor wide = at::zeros({50, 83}, inputs.weight.options());
  wide.narrow(1, 3, 40).copy_(inputs.weight);
  ExpectNear(Linear(inputs.x, wide.narrow(1, 3, 40)), exact, 40, "part of a weight");
  const at::Tensor strided = at::zeros({96, 80}, inputs.x.options());
  strided.as_strided({96, 40}, {80, 2}).copy_(inputs.x);
  ExpectNear(Linear(strided.as_strided({96, 40}, {80, 2}), inputs.weight), exact, 40, "every other number");
  const at::Tensor x = inputs.x.clone().requires_grad_();
  const at::Tensor sum = Linear(x, inputs.weight).sum();  // its gradient has strides of zero
  sum.backward();
  const at::Tensor expected = inputs.weight.to(at::kDouble).sum(0).expand({96, 40});
  ExpectNear(x.grad(), expected, 50, "expanded gradient");
}

// The same row has the same bits whatever is computed beside it, and on any number of threads.
TEST_P(LinearTest, RowsDoNotDependOnTheBatch) {
  const Inputs inputs = Draw({200, 1100, 90}, GetParam());
  if (!HasOwnProducts(inputs.x)) GTEST_LOG_(INFO) << "at::linear is used on this processor";
  const at::Tensor whole = Linear(inputs.x, inputs.weight, inputs.bias);
  if (HasOwnProducts(inputs.x)) {
    const at::Tensor part = Linear(inputs.x.narrow(0, 61, 35), inputs.weight, inputs.bias);
    EXPECT_TRUE(SameBits(part, whole.narrow(0, 61, 35)));
  }
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(SameBits(Linear(inputs.x, inputs.weight, inputs.bias), whole));
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(LinearDeathTest, ShapesMustFit) {
  const at::Tensor x = at::empty({40, 8}), weight = at::empty({4, 9});
  EXPECT_DEATH(Linear(x, weight), "expected \\(rows, in\\) and \\(out, in\\)");
  EXPECT_DEATH(AddLinear(at::empty({40, 5}), x, at::empty({4, 8})), "expected \\(40, 4\\)");
}

}  // namespace
}  // namespace plait::linear
