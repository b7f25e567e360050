// Norms and activations against LibTorch's in float64: values and gradients.
#include "models/rowwise/rowwise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/testing/same_on_threads.h"
#include "models/rowwise/kernels/row_functions.h"

namespace plait::rowwise {
namespace {

class RowwiseTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  // Relative size of the rounding of what is stored.
  double Rounded() const { return GetParam() == at::kBFloat16 ? 0x1p-8 : 0x1p-24; }
  bool HasOwnKernels() const {
    return GetParam() == at::kFloat ? UsableRows<float>() != nullptr : UsableRows<BFloat16>() != nullptr;
  }
  at::Tensor Draw(at::IntArrayRef shape, double shift = 0) const {
    return (at::randn(shape, at::kDouble) + shift).to(GetParam());
  }
};

at::Tensor Leaf(const at::Tensor& t, at::ScalarType type) {
  return t.to(type).detach().clone().requires_grad_();
}

// Element by element.
void ExpectNear(const at::Tensor& a, const at::Tensor& exact, const at::Tensor& bound,
                const std::string& what) {
  const at::Tensor error = (a.detach().to(at::kDouble) - exact.detach()).abs();
  EXPECT_LE((error / bound).max().item<double>(), 1) << what;
}

constexpr double kU = 0x1p-24;  // unit roundoff of sums
constexpr double kEpsilon = 1e-5;

// In float64; undefined without a bias.
struct NormInputs {
  at::Tensor x, weight, bias, of_y;
  bool rms = false;  // without means
};

// Bounds of the rounding of the gradients of x, weight and bias, and of the values. A sum of terms of
// independent signs errs by 8 u sum |a b| (its standard deviation is below u sum |a b|), one of n terms of
// one sign by (sqrt(n) + 8) u of itself (16 sums of n / 16 terms: 4 standard deviations). The deviations
// d = x - mean have the error of the mean and a rounding of their own, the factor 1 / sqrt(var + epsilon) half the
// relative error of the variance and 4 u; what is multiplied passes its error on. `rounded` is what storing
// a result adds. Without means these are 0, without an error.
std::vector<at::Tensor> NormBounds(const NormInputs& in, double rounded) {
  const double c = 8 * kU, one_sign = (std::sqrt(static_cast<double>(in.x.size(1))) + 8) * kU;
  const double means = in.rms ? 0 : 1;
  const at::Tensor mean = in.x.mean(1, true) * means, d = in.x - mean, variance = (d * d).mean(1, true);
  const at::Tensor factor = (variance + kEpsilon).rsqrt(), hat = d * factor;
  const at::Tensor mean_error = in.x.abs().mean(1, true) * (one_sign * means);
  const at::Tensor variance_error = variance * one_sign + mean_error * mean_error;
  const at::Tensor relative = variance_error / (variance + kEpsilon) / 2 + 4 * kU;
  const at::Tensor hat_error = (mean_error + d.abs() * kU) * factor + hat.abs() * (relative + 2 * kU);

  const at::Tensor bias = in.bias.defined() ? in.bias : at::zeros_like(in.weight);
  const at::Tensor y = hat * in.weight + bias;
  const at::Tensor of_values =
      in.weight.abs() * hat_error + ((hat * in.weight).abs() + bias.abs()) * (4 * kU) + y.abs() * rounded;

  const at::Tensor g = in.weight * in.of_y, of_hat = hat_error;
  const at::Tensor shift = g.mean(1, true) * means, along = (g * hat).mean(1, true),
                   inner = g - shift - hat * along;
  const at::Tensor shift_error = g.abs().mean(1, true) * (c * means);
  const at::Tensor along_error = (g.abs() * (of_hat + hat.abs() * c)).mean(1, true);
  const at::Tensor of_x = ((g.abs() + shift.abs() + (hat * along).abs()) * (4 * kU) + shift_error +
                           of_hat * along.abs() + hat.abs() * along_error) *
                              factor +
                          (inner * factor).abs() * (relative + rounded);
  const at::Tensor of_weight =
      (in.of_y.abs() * (of_hat + hat.abs() * c)).sum(0) + (hat * in.of_y).sum(0).abs() * rounded;
  const at::Tensor of_bias = in.of_y.abs().sum(0) * c + in.of_y.sum(0).abs() * rounded;
  if (!in.bias.defined()) return {of_x, of_weight, of_values};
  return {of_x, of_weight, of_bias, of_values};
}

// Gradients, then values, by LibTorch or by kernels of our own.
std::vector<at::Tensor> RunNorm(const NormInputs& in, at::ScalarType type, bool own) {
  std::vector<at::Tensor> inputs = {Leaf(in.x, type), Leaf(in.weight, type)};
  if (in.bias.defined()) inputs.push_back(Leaf(in.bias, type));
  const at::Tensor b = in.bias.defined() ? inputs[2] : at::Tensor();
  const auto norm = [&]() {
    if (in.rms && own) return RmsNorm(inputs[0], inputs[1], kEpsilon);
    if (in.rms && type != at::kDouble) return at::rms_norm(inputs[0], {in.x.size(1)}, inputs[1], kEpsilon);
    if (in.rms) return inputs[0] * (inputs[0].square().mean(1, true) + kEpsilon).rsqrt() * inputs[1];
    return own ? LayerNorm(inputs[0], inputs[1], b, kEpsilon)
               : at::layer_norm(inputs[0], {in.x.size(1)}, inputs[1], b, kEpsilon);
  };
  const at::Tensor y = norm();
  std::vector<at::Tensor> results = torch::autograd::grad({y}, inputs, {in.of_y.to(type)});
  results.push_back(y);
  return results;
}

// Of processors without own kernels: LibTorch's operator, whose rounding is not ours to bound, with these arguments.
void ExpectSame(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& of_libtorch,
                const std::string& what) {
  ASSERT_EQ(actual.size(), of_libtorch.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(actual[i].equal(of_libtorch[i])) << what << ", result " << i;
}

// A mean of 3, so that deviations lose digits. A row of one number has no deviation but epsilon's.
TEST_P(RowwiseTest, NormsAreThoseOfFloat64) {
  at::manual_seed(3);
  struct Shape {
    std::int64_t rows, width;
  };
  for (const Shape& s :
       std::vector<Shape>{{1, 1}, {5, 7}, {33, 16}, {70, 128}, {9, 100}, {300, 768}, {513, 65}}) {
    const auto draw = [&](at::IntArrayRef shape, double shift) { return Draw(shape, shift).to(at::kDouble); };
    for (const std::string kind : {"layer norm with bias", "layer norm", "RMS norm"}) {
      const bool with_bias = kind == "layer norm with bias";
      const NormInputs in = {draw({s.rows, s.width}, 3), draw({s.width}, 1),
                             with_bias ? draw({s.width}, 0) : at::Tensor(), draw({s.rows, s.width}, 0),
                             kind == "RMS norm"};
      const std::string what = kind + ", " + std::to_string(s.rows) + " x " + std::to_string(s.width);
      const auto actual = RunNorm(in, GetParam(), true);
      if (!HasOwnKernels()) {
        ExpectSame(actual, RunNorm(in, GetParam(), false), what);
        continue;
      }
      const auto exact = RunNorm(in, at::kDouble, false), bounds = NormBounds(in, Rounded());
      for (std::size_t i = 0; i < actual.size(); ++i)
        ExpectNear(actual[i], exact[i], bounds[i], what + ", result " + std::to_string(i));
    }
  }
}

// Bounds of the rounding of GELU's values and slopes. Exact: the normal distribution's function errs
// by 1.8e-7 (half of erf's 3.6e-7), which x multiplies in the values, and its density by (4 + x^2) u of
// itself, the x^2 from the argument of the exponential. By tanh: s = sigmoid(a), of an argument with a
// relative error of 4 u, errs by 4 u s and by 4 u |a| s (1 - s), and LibTorch's own 1 + tanh by 2^-52; the
// slope s + x s (1 - s) inner depends on it by at most 1 + |x| inner. It is stored for the backward pass, and rounded there.
struct GeluBounds {
  at::Tensor values, slopes;
};
GeluBounds BoundsOfGelu(const at::Tensor& x, GeluKind kind) {
  const at::Tensor size = x.abs(), square = x * x;
  if (kind == GeluKind::kExact) {
    const at::Tensor density = (square * -0.5).exp() * 0.4;
    return {size * 2e-7, size * density * (square + 4) * kU + 2e-7};
  }
  const double twice_root = 2 * 0.7978845608028654;
  const at::Tensor a = (x + x * square * 0.044715) * twice_root, s = a.sigmoid(), rest = (-a).sigmoid();
  const at::Tensor inner = (square * (3 * 0.044715) + 1) * twice_root;
  const at::Tensor s_error = s * (a.abs() * rest + 1) * (4 * kU) + 0x1p-52;
  return {size * s_error, s_error * (size * inner + 1) + size * inner * (s * kU) + 1e-30};
}

TEST_P(RowwiseTest, SlopesFarFromZeroAreOneAndZero) {
  for (const double far : {40.0, 1e4, 1e13, 1e18, 1e38}) {
    if (far > 1e18 && !HasOwnKernels()) continue;  // whose square overflows in LibTorch's kernels
    for (const GeluKind kind : {GeluKind::kExact, GeluKind::kTanh}) {
      const at::Tensor x = Leaf(at::full({33}, far, at::kDouble), GetParam());
      const at::Tensor negative = Leaf(at::full({33}, -far, at::kDouble), GetParam());
      const at::Tensor ones = at::ones({33}, GetParam());
      EXPECT_TRUE(torch::autograd::grad({Gelu(x, kind)}, {x}, {ones})[0].equal(ones)) << far;
      const at::Tensor none = torch::autograd::grad({Gelu(negative, kind)}, {negative}, {ones})[0];
      EXPECT_LE(none.abs().max().item<double>(), 1e-30) << far;
    }
  }
}

// Numbers of a wide range, so that both tails and the middle are seen.
TEST_P(RowwiseTest, GeluIsThatOfFloat64) {
  const at::Tensor x = at::linspace(-12, 12, 4097, at::kDouble).to(GetParam());
  const at::Tensor of_y = Draw({4097});
  for (const GeluKind kind : {GeluKind::kExact, GeluKind::kTanh}) {
    const char* name = kind == GeluKind::kExact ? "none" : "tanh";
    const at::Tensor mine = Leaf(x, GetParam()), theirs = Leaf(x, at::kDouble);
    const at::Tensor y = Gelu(mine, kind), exact = at::gelu(theirs, name);
    if (!HasOwnKernels()) {
      const at::Tensor same = Leaf(x, GetParam()), of_libtorch = at::gelu(same, name);
      ExpectSame({y, torch::autograd::grad({y}, {mine}, {of_y})[0]},
                 {of_libtorch, torch::autograd::grad({of_libtorch}, {same}, {of_y})[0]}, name);
      continue;
    }
    const GeluBounds bounds = BoundsOfGelu(x.to(at::kDouble), kind);
    const double stored = Rounded() + 2 * kU;
    ExpectNear(y, exact, bounds.values + exact.detach().abs() * stored + 1e-30, name);
    const at::Tensor of_mine = torch::autograd::grad({y}, {mine}, {of_y})[0];
    const at::Tensor of_theirs = torch::autograd::grad({exact}, {theirs}, {of_y.to(at::kDouble)})[0];
    ExpectNear(
        of_mine, of_theirs,
        bounds.slopes * of_y.to(at::kDouble).abs() * (1 + stored) + of_theirs.abs() * (2 * stored) + 1e-30,
        std::string("gradient, ") + name);
  }
}

// A sigmoid s errs by 8 u s. Its slope s (1 + x (1 - s)) has the error of s in both factors, and four roundings; what is
// multiplied rounds once more each, the result is stored.
TEST_P(RowwiseTest, SiluTimesIsThatOfFloat64) {
  if (!HasOwnKernels()) return;  // LibTorch's operators round in between
  at::manual_seed(4);
  const at::Tensor gate = at::linspace(-30, 30, 4097, at::kDouble).to(GetParam()), x = Draw({4097}),
                   of_y = Draw({4097});
  const std::vector<at::Tensor> mine = {Leaf(gate, GetParam()), Leaf(x, GetParam())};
  const std::vector<at::Tensor> theirs = {Leaf(gate, at::kDouble), Leaf(x, at::kDouble)};
  const at::Tensor y = SiluTimes(mine[0], mine[1]), exact = theirs[0] * theirs[0].sigmoid() * theirs[1];
  const std::vector<at::Tensor> of_mine = torch::autograd::grad({y}, mine, {of_y});
  const std::vector<at::Tensor> of_theirs = torch::autograd::grad({exact}, theirs, {of_y.to(at::kDouble)});

  const at::Tensor g = theirs[0].detach(), s = g.sigmoid(),
                   size = (theirs[1].detach() * of_y.to(at::kDouble)).abs();
  const at::Tensor inner = g * (1 - s) + 1;
  const at::Tensor of_slope = s * (inner.abs() * (12 * kU) + g.abs() * (s * 8 + 2) * kU + 2 * kU);
  const double stored = Rounded() + 12 * kU;
  ExpectNear(y, exact, exact.detach().abs() * stored + 1e-30, "values");
  ExpectNear(of_mine[0], of_theirs[0], size * of_slope + of_theirs[0].abs() * stored + 1e-30, "of the gate");
  ExpectNear(of_mine[1], of_theirs[1], of_theirs[1].abs() * stored + 1e-30, "of x");
}

TEST_P(RowwiseTest, ViewsAndOddCounts) {
  const at::Tensor wide = Draw({40, 50}), weight = Draw({20}, 1);
  const at::Tensor x = wide.narrow(1, 7, 20);
  // LibTorch's operators take other paths for views, and round otherwise there: of a GELU's x / 2 (1 + erf) a sum that
  // cancels, times x / 2, which is at most 3 here.
  const auto same = [&](const at::Tensor& a, const at::Tensor& b) {
    return HasOwnKernels() ? a.equal(b) : a.allclose(b, /*rtol=*/8 * Rounded(), /*atol=*/24 * Rounded());
  };
  EXPECT_TRUE(same(LayerNorm(x, weight, {}, 1e-5), LayerNorm(x.contiguous(), weight, {}, 1e-5)));
  EXPECT_TRUE(same(RmsNorm(x, weight, 1e-5), RmsNorm(x.contiguous(), weight, 1e-5)));
  EXPECT_TRUE(same(SiluTimes(x, wide.narrow(1, 9, 20)),
                   SiluTimes(x.contiguous(), wide.narrow(1, 9, 20).contiguous())));
  EXPECT_TRUE(same(Gelu(x, GeluKind::kExact), Gelu(x.contiguous(), GeluKind::kExact)));
  EXPECT_TRUE(same(Gelu(x.t(), GeluKind::kTanh), Gelu(x.contiguous(), GeluKind::kTanh).t()));
}

// A row, and a gradient of parameters, has the same bits on any number of threads.
TEST_P(RowwiseTest, ThreadsDoNotMatter) {
  if (!HasOwnKernels()) return;  // LibTorch's promise no such thing
  const at::Tensor x = Leaf(Draw({700, 600}), GetParam()), weight = Leaf(Draw({600}, 1), GetParam());
  const at::Tensor of_y = Draw({700, 600});
  ExpectSameOnThreads(9, [&] {
    const at::Tensor normal = RmsNorm(x, weight, 1e-5);
    const at::Tensor y = SiluTimes(normal, Gelu(LayerNorm(x, weight, {}, 1e-5), GeluKind::kExact));
    std::vector<at::Tensor> results = torch::autograd::grad({y}, {x, weight}, {of_y});
    results.push_back(y.detach());
    return results;
  });
}

// Own kernels are not recorded, so that a second derivative would lack terms.
TEST_P(RowwiseTest, OwnGradientsAreNotDifferentiatedAgain) {
  if (!HasOwnKernels()) return;  // LibTorch's may be
  const at::Tensor x = Draw({3, 8}).requires_grad_(), weight = Draw({8});
  for (const at::Tensor& y : {LayerNorm(x, weight, {}, kEpsilon), RmsNorm(x, weight, kEpsilon),
                              Gelu(x, GeluKind::kTanh), SiluTimes(x, x)}) {
    EXPECT_THROW(torch::autograd::grad({y}, {x}, {y.detach()}, {}, /*create_graph=*/true), c10::Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RowwiseTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(RowwiseDeathTest, ShapesMustFit) {
  EXPECT_DEATH(LayerNorm(at::empty({4, 8}), at::empty({9}), {}, 1e-5),
               "expected \\(rows, width\\) and \\(width\\)");
  EXPECT_DEATH(RmsNorm(at::empty({4, 8}), at::empty({9}), 1e-5),
               "expected \\(rows, width\\) and \\(width\\)");
  EXPECT_DEATH(LayerNorm(at::empty({4, 8}), at::empty({8}), at::empty({1}), 1e-5),
               "a bias .* of shape \\[1\\]");
  EXPECT_DEATH(SiluTimes(at::empty({4, 8}), at::empty({4, 9})), "expected one shape and type");
}

}  // namespace
}  // namespace plait::rowwise
