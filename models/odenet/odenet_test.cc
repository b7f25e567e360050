// Forward passes against loops over doubles, gradients against finite differences.
#include "models/odenet/odenet.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plait::odenet {
namespace {

using Parameters = std::map<std::string, at::Tensor>;
using Vector = std::vector<double>;

Parameters ByName(const OdeNet& net) {
  Parameters parameters;
  for (const models::ParameterUnit& unit : net.units()) {
    for (const models::ParameterSpec& spec : unit.parameters) parameters[spec.name] = spec.tensor.detach();
  }
  return parameters;
}

double Act(Activation activation, double x) {
  if (activation == Activation::kTanh) return std::tanh(x);
  if (activation == Activation::kRelu) return x > 0 ? x : 0;
  if (x <= -0.1) return 0;
  return x >= 0.1 ? x : x * x / 0.4 + x / 2 + 0.025;
}

// s(W x + b) for one sample: x is (in, rows, columns), rows 1 in one dimension, both 1 in the dense form.
Vector Affine(const OdeNetOptions& o, bool dense, const Vector& x, const at::Tensor& w, const at::Tensor& b,
              bool activates) {
  const std::int64_t out = w.size(0), in = w.size(1);
  const std::int64_t rows = dense || o.form != Form::kConv2d ? 1 : o.sample[0];
  const std::int64_t columns = dense || o.form == Form::kDense ? 1 : o.sample.back();
  const int reach_rows = rows > 1 ? 1 : 0, reach_columns = columns > 1 ? 1 : 0;
  Vector y;
  for (std::int64_t k = 0; k < out; ++k) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        double sum = b[k].item<double>();
        for (std::int64_t j = 0; j < in; ++j) {
          for (int dr = -reach_rows; dr <= reach_rows; ++dr) {
            for (int dc = -reach_columns; dc <= reach_columns; ++dc) {
              if (r + dr < 0 || r + dr >= rows || c + dc < 0 || c + dc >= columns) continue;
              at::Tensor weight = w[k][j];
              if (weight.dim() == 2) weight = weight[dr + 1];
              if (weight.dim() == 1) weight = weight[dc + 1];
              sum += weight.item<double>() * x[(j * rows + r + dr) * columns + c + dc];
            }
          }
        }
        y.push_back(activates ? Act(o.activation, sum) : sum);
      }
    }
  }
  return y;
}

// F at one point of time. `name`: "layers.3" or "controls.0".
Vector RateOf(const OdeNetOptions& o, const Parameters& p, const std::string& name, const Vector& u) {
  if (o.form == Form::kDense)
    return Affine(o, true, u, p.at(name + ".linear.weight"), p.at(name + ".linear.bias"), true);
  const Vector middle = Affine(o, false, u, p.at(name + ".conv1.weight"), p.at(name + ".conv1.bias"), true);
  return Affine(o, false, middle, p.at(name + ".conv2.weight"), p.at(name + ".conv2.bias"), true);
}

Vector Logits(const OdeNetOptions& o, const Parameters& p, const Vector& x, double h) {
  const bool dense = o.form == Form::kDense;
  Vector u = Affine(o, dense, x, p.at("opening.weight"), p.at("opening.bias"), true);
  for (std::int64_t i = 0; i < o.layers; ++i) {
    const Vector rate = RateOf(o, p, absl::StrCat("layers.", i), u);
    for (std::size_t j = 0; j < u.size(); ++j) u[j] += h * rate[j];
  }
  if (o.hidden > 0) u = Affine(o, true, u, p.at("closing_hidden.weight"), p.at("closing_hidden.bias"), true);
  return Affine(o, true, u, p.at("closing.weight"), p.at("closing.bias"), false);
}

std::vector<std::int64_t> InputShape(const OdeNetOptions& o, std::int64_t batch) {
  std::vector<std::int64_t> shape = {batch};
  if (o.form == Form::kConv2d) shape.push_back(1);
  shape.insert(shape.end(), o.sample.begin(), o.sample.end());
  return shape;
}

Vector Numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous().flatten();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

const OdeNetOptions kDense = {.sample = {3}, .channels = 4, .layers = 8, .final_time = 2, .classes = 5};
const OdeNetOptions kSpectra = {.form = Form::kConv1d,
                                .sample = {6},
                                .channels = 2,
                                .layers = 4,
                                .final_time = 1,
                                .activation = Activation::kSmoothRelu,
                                .classes = 3};
const OdeNetOptions kImages = {.form = Form::kConv2d,
                               .sample = {4, 5},
                               .channels = 2,
                               .layers = 3,
                               .final_time = 0,
                               .activation = Activation::kRelu,
                               .hidden = 4,
                               .classes = 3};

class OdeNetAgainstLoops : public ::testing::TestWithParam<OdeNetOptions> {};

TEST_P(OdeNetAgainstLoops, Forward) {
  const OdeNetOptions& o = GetParam();
  torch::manual_seed(11);
  OdeNet net(o, at::kDouble);
  const at::Tensor x = at::rand(InputShape(o, 2), at::kDouble) - 0.5;
  const at::Tensor y = net.Forward(x);
  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{2, o.classes}));
  const double h = o.final_time > 0 ? o.final_time / static_cast<double>(o.layers) : 1;
  for (std::int64_t sample = 0; sample < 2; ++sample) {
    const Vector expected = Logits(o, ByName(net), Numbers(x[sample]), h);
    // Sums of at most 40 products of numbers of order 1 in each of at most 12 layers.
    for (std::int64_t k = 0; k < o.classes; ++k)
      EXPECT_NEAR(y[sample][k].item<double>(), expected[k], 40 * 12 * 4 * 0x1p-53);
  }
}

// Along a random direction d: (f(p + e d) - f(p - e d)) / 2e has an error of e^2 and of eps / e, 1e-10 for e = 1e-5.
TEST_P(OdeNetAgainstLoops, GradientsAreFiniteDifferences) {
  OdeNetOptions o = GetParam();
  if (o.activation == Activation::kRelu) o.activation = Activation::kTanh;  // without corners
  o.time_tikhonov = 0.3;
  for (const TimeWeights weights : {TimeWeights::kPerLayer, TimeWeights::kSpline}) {
    torch::manual_seed(5);
    o.time_weights = weights;
    o.controls = 3;
    OdeNet net(o, at::kDouble);
    const models::Batch batch = {at::rand(InputShape(o, 3), at::kDouble),
                                 at::randint(o.classes, {3}, at::kLong)};
    const auto objective = [&] {
      const at::NoGradGuard no_grad;
      return models::RunModel(net, batch).sum.item<double>() + 3 * net.TimeTikhonov().item<double>();
    };
    at::Tensor loss = models::RunModel(net, batch).sum;
    if (weights == TimeWeights::kPerLayer) loss = loss + 3 * net.TimeTikhonov();
    loss.backward();
    double expected = 0, scale = 0;
    std::vector<at::Tensor> directions;
    for (const at::Tensor& parameter : net.parameters()) {
      directions.push_back(at::rand(parameter.sizes(), at::kDouble) - 0.5);
      ASSERT_TRUE(parameter.grad().defined());
      expected += (parameter.grad() * directions.back()).sum().item<double>();
      scale += parameter.grad().square().sum().item<double>();
    }
    const auto moved = [&](double by) {
      for (std::size_t i = 0; i < directions.size(); ++i)
        net.parameters()[i].detach().add_(directions[i], by);
      const double value = objective();
      for (std::size_t i = 0; i < directions.size(); ++i)
        net.parameters()[i].detach().sub_(directions[i], by);
      return value;
    };
    constexpr double kStep = 1e-5;
    EXPECT_GT(scale, 1e-3);
    EXPECT_NEAR((moved(kStep) - moved(-kStep)) / (2 * kStep), expected, 1e-7 * (1 + std::sqrt(scale)));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, OdeNetAgainstLoops, ::testing::Values(kDense, kSpectra, kImages));

TEST(OdeNet, ABlockTakesLongerStepsWhereTheContextSaysSo) {
  OdeNet net(kDense, at::kDouble);
  const at::Tensor u = at::rand({2, 4}, at::kDouble);
  const auto moved = [&](double dt) { return net.blocks()[3]->Forward({u}, {.dt = dt}).hidden - u; };
  EXPECT_LT((moved(4) - 4 * moved(1)).abs().max().item<double>(), 8 * 0x1p-53);
  EXPECT_GT(moved(1).abs().max().item<double>(), 1e-3);
}

// The numbers of each layer's parameters worked out from those of the control points.
TEST(OdeNet, LayersShareControlPoints) {
  for (const TimeWeights weights : {TimeWeights::kPiecewise, TimeWeights::kSpline}) {
    OdeNetOptions o = kDense;
    o.time_weights = weights;
    o.controls = 4;
    OdeNet net(o, at::kDouble);
    Parameters p = ByName(net);
    for (const char* const kind : {".linear.weight", ".linear.bias"}) {
      const auto control = [&](int j) { return p.at(absl::StrCat("controls.", j, kind)); };
      for (int i = 0; i < 8; ++i) {
        at::Tensor& layer = p[absl::StrCat("layers.", i, kind)];
        layer = control(i / 2);
        if (weights == TimeWeights::kPiecewise) continue;
        const int first = 3 * i / 8;  // 4 points over 8 layers
        const double share = 3.0 * i / 8 - first;
        layer = share == 0 ? control(first) : (1 - share) * control(first) + share * control(first + 1);
      }
    }
    const at::Tensor x = at::rand({3}, at::kDouble);
    const Vector expected = Logits(o, p, Numbers(x), 0.25), y = Numbers(net.Forward(x.unsqueeze(0)));
    for (std::size_t k = 0; k < y.size(); ++k) EXPECT_NEAR(y[k], expected[k], 40 * 12 * 4 * 0x1p-53);
  }
}

TEST(OdeNet, CountsOfParameters) {
  const auto count = [](const OdeNetOptions& o) {
    return models::CountParameters(OdeNet(o, at::TensorOptions(at::kMeta).dtype(at::kFloat)).units());
  };
  EXPECT_EQ(count({.layers = 32}), 24 + 32 * 72 + 45);  // 2 -> 8, 8 -> 8, 8 -> 5
  EXPECT_EQ(count({.layers = 1024}), 24 + 1024 * 72 + 45);
  EXPECT_EQ(count({.layers = 32, .time_weights = TimeWeights::kSpline, .controls = 9}), 24 + 9 * 72 + 45);
  EXPECT_EQ(count({.form = Form::kConv2d,
                   .sample = {28, 28},
                   .channels = 4,
                   .layers = 8,
                   .hidden = 32,
                   .classes = 10}),
            40 + 8 * 2 * 148 + (4 * 784 + 1) * 32 + 330);
  EXPECT_EQ(count({.form = Form::kConv1d, .sample = {200}, .channels = 4, .layers = 8, .classes = 16}),
            16 + 8 * 2 * 52 + (800 + 1) * 16);
}

TEST(OdeNet, TimeTikhonovIsTheSumOfSquaresOverTheStep) {
  OdeNetOptions o = kDense;
  o.time_tikhonov = 0.7;
  OdeNet net(o, at::kDouble);
  const Parameters p = ByName(net);
  double sum = 0;
  for (int i = 0; i + 1 < 8; ++i) {
    for (const char* const kind : {".linear.weight", ".linear.bias"}) {
      const Vector a = Numbers(p.at(absl::StrCat("layers.", i, kind))),
                   b = Numbers(p.at(absl::StrCat("layers.", i + 1, kind)));
      for (std::size_t k = 0; k < a.size(); ++k) sum += (b[k] - a[k]) * (b[k] - a[k]);
    }
  }
  EXPECT_NEAR(net.TimeTikhonov().item<double>(), 0.7 / 2 * sum / 0.25, 200 * 0x1p-53 * sum);
  // The loss that is reported stays that of the data, and evaluation has no gradient of it.
  const models::Batch batch = {at::rand({3, 3}, at::kDouble), at::randint(5, {3}, at::kLong)};
  const double with = models::RunModel(net, batch).sum.item<double>();
  net.SetTraining(false);
  EXPECT_DOUBLE_EQ(with, models::RunModel(net, batch).sum.item<double>());
}

TEST(OdeNet, UnitsListEverythingOnceAndDecayIsThatOfTheLayers) {
  const OdeNet net(kDense, at::kDouble);
  const std::vector<models::ParameterUnit> units = net.units();
  ASSERT_EQ(units.size(), 9u);
  EXPECT_EQ(units[3].name, "layers.2");
  EXPECT_EQ(units[3].parameters[1].name, "layers.2.linear.bias");
  std::size_t parameters = 0;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& spec : unit.parameters)
      EXPECT_EQ(spec.decays, unit.block >= 0) << spec.name;
    parameters += unit.parameters.size();
  }
  EXPECT_EQ(parameters, net.parameters().size());
  EXPECT_EQ(units[0].parameters[0].used_by, models::UsedBy::kPrologue);
}

TEST(OdeNet, UnitsDrawWhatTheConstructorDraws) {
  OdeNetOptions o = kSpectra;
  for (const double deviation : {-1.0, 0.0, 1e-6}) {
    o.initial_weights = deviation;
    torch::manual_seed(3);
    const OdeNet direct(o, at::kDouble);
    OdeNet meta(o, at::TensorOptions(at::kMeta).dtype(at::kDouble));
    const std::vector<models::ParameterUnit> units = meta.units();
    torch::manual_seed(3);
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      for (const models::ParameterSpec& spec : units[unit].parameters) {
        models::Materialize(spec.tensor, at::empty(spec.tensor.sizes(), at::kDouble));
      }
      meta.ResetParameters(unit);
    }
    for (std::size_t i = 0; i < direct.parameters().size(); ++i) {
      EXPECT_TRUE(meta.parameters()[i].equal(direct.parameters()[i])) << i;
    }
    const double largest = ByName(direct).at("layers.2.conv2.weight").abs().max().item<double>();
    EXPECT_GE(largest, deviation < 0 ? 0.1 : 0);
    EXPECT_LE(largest, deviation < 0 ? 1 : 6 * deviation);
  }
}

TEST(OdeNet, DescribesItself) {
  EXPECT_EQ(OdeNet({.layers = 16}, at::kFloat).Description(),
            "OdeNet(\n"
            "  (opening): Linear(in_features=2, out_features=8, bias=True), Tanh\n"
            "  (layers): 16 x u + 0.3125 F(u), F: Linear(in_features=8, out_features=8, bias=True), Tanh\n"
            "  (closing): Linear(in_features=8, out_features=5, bias=True)\n"
            ")");
}

}  // namespace
}  // namespace plait::odenet
