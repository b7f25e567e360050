// Layer norm and GELU against LibTorch's in float64: values and gradients.
#include "models/rowwise/rowwise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

namespace plait::rowwise {
namespace {

class RowwiseTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  // Relative size of the rounding of what is stored.
  double Rounded() const { return GetParam() == at::kBFloat16 ? 0x1p-8 : 0x1p-24; }
  at::Tensor Draw(at::IntArrayRef shape, double shift = 0) const {
    return (at::randn(shape, at::kDouble) + shift).to(GetParam());
  }
};

at::Tensor Leaf(const at::Tensor& t, at::ScalarType type) {
  return t.to(type).detach().clone().requires_grad_();
}

void ExpectNear(const at::Tensor& a, const at::Tensor& b, double tolerance, const std::string& what) {
  const double difference = (a.detach().to(at::kDouble) - b.detach()).abs().max().item<double>();
  EXPECT_LE(difference, tolerance * std::max(1.0, b.detach().abs().max().item<double>())) << what;
}

// A row's moments are sums of `width` numbers of about 1, rounded to u: with a mean of 3 the deviations lose
// 3 (width + 2) u at most, and so do the gradients' two means; sums over rows lose `rows` u of as many
// numbers.
TEST_P(RowwiseTest, LayerNormIsThatOfFloat64) {
  at::manual_seed(3);
  struct Shape {
    std::int64_t rows, width;
  };
  for (const Shape& s :
       std::vector<Shape>{{1, 1}, {5, 7}, {33, 16}, {70, 128}, {9, 100}, {300, 768}, {513, 65}}) {
    const std::string what = std::to_string(s.rows) + " x " + std::to_string(s.width);
    const at::Tensor x = Draw({s.rows, s.width}, 3), weight = Draw({s.width}, 1), bias = Draw({s.width});
    const at::Tensor of_y = Draw({s.rows, s.width});
    for (const bool with_bias : {true, false}) {
      const auto run = [&](at::ScalarType type, bool own) {
        std::vector<at::Tensor> inputs = {Leaf(x, type), Leaf(weight, type)};
        if (with_bias) inputs.push_back(Leaf(bias, type));
        const at::Tensor b = with_bias ? inputs[2] : at::Tensor();
        const at::Tensor y = own ? LayerNorm(inputs[0], inputs[1], b, 1e-5)
                                 : at::layer_norm(inputs[0], {s.width}, inputs[1], b, 1e-5);
        std::vector<at::Tensor> results = torch::autograd::grad({y}, inputs, {of_y.to(type)});
        results.push_back(y);
        return results;
      };
      const auto actual = run(GetParam(), true), exact = run(at::kDouble, false);
      const double u = 0x1p-24, width = static_cast<double>(s.width), rows = static_cast<double>(s.rows);
      // A row of one number has no deviation but epsilon's: 1e-5 under a root, which scales errors by 316.
      const double scale = s.width == 1 ? 316 : 1;
      for (std::size_t i = 0; i < actual.size(); ++i) {
        const double tolerance = (4 * (width + 2) * 3 + rows) * u * scale + 2 * Rounded();
        ExpectNear(actual[i], exact[i], tolerance, what + ", result " + std::to_string(i));
      }
    }
  }
}

// Numbers of a wide range, so that both tails and the middle are seen. The normal distribution's function
// errs by 1.8e-7 (half of erf's 3.6e-7), which x multiplies; tanh's by a few roundings of 2^-24. A gradient
// adds the density's error to it, x times a few roundings of at most 0.4.
TEST_P(RowwiseTest, GeluIsThatOfFloat64) {
  const at::Tensor x = at::linspace(-12, 12, 4097, at::kDouble).to(GetParam());
  const at::Tensor of_y = Draw({4097});
  for (const GeluKind kind : {GeluKind::kExact, GeluKind::kTanh}) {
    const char* name = kind == GeluKind::kExact ? "none" : "tanh";
    const at::Tensor mine = Leaf(x, GetParam()), theirs = Leaf(x, at::kDouble);
    const at::Tensor y = Gelu(mine, kind), exact = at::gelu(theirs, name);
    const at::Tensor error = (y.detach().to(at::kDouble) - exact.detach()).abs();
    const at::Tensor bound =
        exact.detach().abs() * (Rounded() + 2 * 0x1p-24) + x.to(at::kDouble).abs() * 2e-7 + 1e-30;
    EXPECT_LE((error / bound).max().item<double>(), 1) << name;
    const at::Tensor of_mine = torch::autograd::grad({y}, {mine}, {of_y})[0];
    const at::Tensor of_theirs = torch::autograd::grad({exact}, {theirs}, {of_y.to(at::kDouble)})[0];
    ExpectNear(of_mine, of_theirs, 1e-6 + Rounded() * 2, name);
  }
}

TEST_P(RowwiseTest, ViewsAndOddCounts) {
  const at::Tensor wide = Draw({40, 50}), weight = Draw({20}, 1);
  const at::Tensor x = wide.narrow(1, 7, 20);
  EXPECT_TRUE(LayerNorm(x, weight, {}, 1e-5).equal(LayerNorm(x.contiguous(), weight, {}, 1e-5)));
  EXPECT_TRUE(Gelu(x, GeluKind::kExact).equal(Gelu(x.contiguous(), GeluKind::kExact)));
  EXPECT_TRUE(Gelu(x.t(), GeluKind::kTanh).equal(Gelu(x.contiguous(), GeluKind::kTanh).t()));
}

// A row, and a gradient of parameters, has the same bits on any number of threads.
TEST_P(RowwiseTest, ThreadsDoNotMatter) {
  const at::Tensor x = Draw({700, 200}), weight = Draw({200}, 1), of_y = Draw({700, 200});
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    const at::Tensor input = Leaf(x, GetParam()), w = Leaf(weight, GetParam());
    const at::Tensor y = Gelu(LayerNorm(input, w, {}, 1e-5), GeluKind::kExact);
    std::vector<at::Tensor> results = torch::autograd::grad({y}, {input, w}, {of_y});
    results.push_back(y.detach());
    return results;
  };
  const int before = at::get_num_threads();
  const auto one = run(1), three = run(3);
  at::set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(three[i])) << "result " << i;
}

INSTANTIATE_TEST_SUITE_P(Types, RowwiseTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(RowwiseDeathTest, ShapesMustFit) {
  EXPECT_DEATH(LayerNorm(at::empty({4, 8}), at::empty({9}), {}, 1e-5),
               "expected \\(rows, width\\) and \\(width\\)");
}

}  // namespace
}  // namespace plait::rowwise
