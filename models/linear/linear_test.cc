// Linear layers with own products against float64 products of LibTorch: values and gradients.
#include "models/linear/linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "base/testing/same_on_threads.h"
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

// Sums of products of the same inputs' absolute values, which rounding is measured by.
Inputs Magnitudes(const Inputs& inputs) {
  const auto of = [](const at::Tensor& t) { return t.to(at::kDouble).abs(); };
  return {of(inputs.x), of(inputs.weight), of(inputs.bias), of(inputs.residual), of(inputs.of_out)};
}

// Element by element: 8 u sum |a b|, with u = 2^-24, the unit roundoff of the sums, and sum |a b| in
// `magnitude`. The addition of term i rounds by at most u |s_i|. The terms' signs are independent, so the
// partial sum s_i of products of standard normal numbers is about sqrt(i), not i, and with independent
// rounding errors of up to u |s_i| the standard deviation of the total is u sqrt(sum s_i^2 / 3) = 0.41 u k,
// which is 0.64 u sum |a b|: 8 are twelve of these, and room for elements whose partial sums are larger. Of
// up to 6 terms, a bias and a residual, 8 is a bound for any numbers. `rounded` is what is rounded to the
// result's own type, in bfloat16 with 2^-8.
void ExpectNear(const at::Tensor& actual, const at::Tensor& exact, const at::Tensor& magnitude,
                const std::string& what, const at::Tensor& rounded) {
  ASSERT_EQ(actual.sizes(), exact.sizes()) << what;
  const double own = actual.scalar_type() == at::kBFloat16 ? 0x1p-8 : 0;
  const at::Tensor bound = rounded * own + magnitude * (8 * 0x1p-24);
  const at::Tensor excess = ((actual.to(at::kDouble) - exact).abs() / bound).max();
  EXPECT_LE(excess.item<double>(), 1.0) << what;
}
void ExpectNear(const at::Tensor& actual, const at::Tensor& exact, const at::Tensor& magnitude,
                const std::string& what) {
  ExpectNear(actual, exact, magnitude, what, exact.abs());
}

class LinearTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(LinearTest, ValuesAndGradientsAreThoseOfFloat64) {
  at::manual_seed(7);
  // Odd numbers, one vector, several panels, more than one chunk of k forward (4099) and backward (2051), and such
  // chunks with more rows and columns than one task has (1100, 2100, 600).
  std::vector<Sizes> all = {{32, 1, 1},     {33, 7, 5},     {45, 16, 65},   {64, 128, 384},   {77, 31, 129},
                            {32, 4099, 33}, {2051, 15, 31}, {1100, 3, 600}, {1100, 2100, 600}};
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
    const Results sizes = RunLayer(Magnitudes(inputs), at::kDouble, exact);
    // LibTorch rounds before it adds the residual, too.
    const at::Tensor before = (expected[0] - inputs.residual.to(at::kDouble)).abs();
    const at::Tensor rounded = expected[0].abs() + (HasOwnProducts(inputs.x) ? 0 : 1) * before;
    ExpectNear(actual[0], expected[0], sizes[0], what + ": values", rounded);
    ExpectNear(actual[1], expected[1], sizes[1], what + ": gradient of x");
    ExpectNear(actual[2], expected[2], sizes[2], what + ": gradient of the weight");
    ExpectNear(actual[3], expected[3], sizes[3], what + ": gradient of the bias");
    EXPECT_TRUE(SameBits(actual[4], inputs.of_out)) << what << ": gradient of the residual";
  }
}

// Without bias or residual, and where only one input has a gradient.
TEST_P(LinearTest, InputsMayBeMissing) {
  const Inputs inputs = Draw({40, 24, 48}, GetParam());
  const at::Tensor exact = at::linear(inputs.x.to(at::kDouble), inputs.weight.to(at::kDouble));
  const Inputs sizes = Magnitudes(inputs);
  const at::Tensor magnitude = at::linear(sizes.x, sizes.weight);
  ExpectNear(Linear(inputs.x, inputs.weight), exact, magnitude, "no bias");
  const at::Tensor with_bias = Linear(inputs.x, inputs.weight, inputs.bias);
  ExpectNear(with_bias, exact + inputs.bias.to(at::kDouble), magnitude + sizes.bias, "bias");
  const at::Tensor x = inputs.x.clone().requires_grad_();
  const at::Tensor out = AddLinear(inputs.residual, x, inputs.weight);
  const auto gradients = torch::autograd::grad({out}, {x}, {inputs.of_out});
  ExpectNear(gradients[0], at::matmul(inputs.of_out.to(at::kDouble), inputs.weight.to(at::kDouble)),
             at::matmul(sizes.of_out, sizes.weight), "gradient of x alone");
  const at::Tensor residual = inputs.residual.clone().requires_grad_();
  const at::Tensor sum = AddLinear(residual, inputs.x, inputs.weight);
  EXPECT_TRUE(SameBits(torch::autograd::grad({sum}, {residual}, {inputs.of_out})[0], inputs.of_out));
}

// Views: a transposed x, a weight that is part of a wider one, an expanded gradient.
TEST_P(LinearTest, OperandsMayBeViews) {
  const Inputs inputs = Draw({96, 40, 50}, GetParam());
  const at::Tensor exact = at::linear(inputs.x.to(at::kDouble), inputs.weight.to(at::kDouble));
  const Inputs sizes = Magnitudes(inputs);
  const at::Tensor magnitude = at::linear(sizes.x, sizes.weight);
  const at::Tensor apart = inputs.x.t().contiguous().t();
  ExpectNear(Linear(apart, inputs.weight), exact, magnitude, "transposed x");
  const at::Tensor wide = at::zeros({50, 83}, inputs.weight.options());
  wide.narrow(1, 3, 40).copy_(inputs.weight);
  ExpectNear(Linear(inputs.x, wide.narrow(1, 3, 40)), exact, magnitude, "part of a weight");
  const at::Tensor strided = at::zeros({96, 80}, inputs.x.options());
  strided.as_strided({96, 40}, {80, 2}).copy_(inputs.x);
  ExpectNear(Linear(strided.as_strided({96, 40}, {80, 2}), inputs.weight), exact, magnitude,
             "every other number");
  const at::Tensor x = inputs.x.clone().requires_grad_();
  const at::Tensor sum = Linear(x, inputs.weight).sum();  // its gradient has strides of zero
  sum.backward();
  const at::Tensor expected = inputs.weight.to(at::kDouble).sum(0).expand({96, 40});
  ExpectNear(x.grad(), expected, sizes.weight.sum(0).expand({96, 40}), "expanded gradient");
}

// The same row has the same bits whatever is computed beside it.
TEST_P(LinearTest, RowsDoNotDependOnTheBatch) {
  const Inputs inputs = Draw({200, 1100, 90}, GetParam());
  if (!HasOwnProducts(inputs.x)) GTEST_LOG_(INFO) << "at::linear is used on this processor";
  const at::Tensor whole = Linear(inputs.x, inputs.weight, inputs.bias);
  if (HasOwnProducts(inputs.x)) {
    const at::Tensor part = Linear(inputs.x.narrow(0, 61, 35), inputs.weight, inputs.bias);
    EXPECT_TRUE(SameBits(part, whole.narrow(0, 61, 35)));
  }
}

TEST_P(LinearTest, ThreadsDoNotMatter) {
  const Inputs inputs = Draw({200, 1100, 90}, GetParam());
  if (!HasOwnProducts(inputs.x)) return;  // LibTorch's libraries promise no such thing
  const at::Tensor x = inputs.x.clone().requires_grad_(), weight = inputs.weight.clone().requires_grad_();
  ExpectSameOnThreads(3, [&] {
    const at::Tensor y = Linear(x, weight, inputs.bias);
    std::vector<at::Tensor> results = torch::autograd::grad({y}, {x, weight}, {y.detach()});
    results.push_back(y.detach());
    return results;
  });
}

// Own products are not recorded, so that a second derivative would lack terms.
TEST_P(LinearTest, OwnGradientsAreNotDifferentiatedAgain) {
  const Inputs inputs = Draw({.rows = 40, .in = 8, .out = 4}, GetParam());
  const at::Tensor x = inputs.x.requires_grad_(), out = Linear(x, inputs.weight, inputs.bias);
  const auto twice = [&] {
    return torch::autograd::grad({out}, {x}, {inputs.of_out}, {}, /*create_graph=*/true)[0];
  };
  if (!HasOwnProducts(x)) {
    EXPECT_TRUE(twice().defined());
    return;
  }
  EXPECT_THROW(twice(), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(LinearDeathTest, ShapesMustFit) {
  const at::Tensor x = at::empty({40, 8}), weight = at::empty({4, 9});
  EXPECT_DEATH(Linear(x, weight), "expected \\(rows, in\\) and \\(out, in\\)");
  EXPECT_DEATH(AddLinear(at::empty({40, 5}), x, at::empty({4, 8})), "expected \\(40, 4\\)");
}

TEST(LinearDeathTest, AddendsHaveTheTypeAndShapeOfTheResult) {
  const at::Tensor x = at::empty({40, 8}), weight = at::empty({4, 8});
  if (!HasOwnProducts(x)) return;  // LibTorch's operators refuse or convert them
  EXPECT_DEATH(Linear(x, weight, at::empty({1})), "a bias CPUFloatType of shape \\[1\\]; expected .*\\[4\\]");
  EXPECT_DEATH(Linear(x, weight, at::empty({4}, at::kBFloat16)),
               "a bias CPUBFloat16Type .*expected CPUFloatType");
  EXPECT_DEATH(AddLinear(at::empty({40, 4}, at::kBFloat16), x, weight), "a residual CPUBFloat16Type");
}

// Kernels read both operands as numbers of one type.
TEST(LinearDeathTest, OperandsHaveOneType) {
  const at::Tensor x = at::ones({40, 8}), other = at::ones({8, 4}, at::kBFloat16);
  EXPECT_THROW(Product(x, other), c10::Error);  // LibTorch's refuse them
  EXPECT_THROW(Product(other.t().repeat({10, 1}), x.t()), c10::Error);
  if (!HasOwnProducts(x)) return;
  EXPECT_DEATH(Multiply(x, other), "a product of CPUFloatType and CPUBFloat16Type");
}

}  // namespace
}  // namespace plait::linear
