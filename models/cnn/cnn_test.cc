// The network against PyTorch's results and against plain loops in float64.
#include "models/cnn/cnn.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace plait::cnn {
namespace {

constexpr double kEps = 0x1p-53;

std::int64_t Count(const Cnn& cnn) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : cnn.parameters()) count += parameter.numel();
  return count;
}

TEST(Cnn, HasThePublishedNumberOfParameters) {
  // 320 + 18496 + 1179776 + 1290
  EXPECT_EQ(Count(Cnn({}, at::kFloat)), 1199882);
}

TEST(Cnn, DescribesItselfAsPyTorchDoes) {
  EXPECT_EQ(Cnn({}, at::kFloat).Description(),
            "Net(\n"
            "  (conv1): Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1))\n"
            "  (conv2): Conv2d(32, 64, kernel_size=(3, 3), stride=(1, 1))\n"
            "  (dropout1): Dropout(p=0.25, inplace=False)\n"
            "  (dropout2): Dropout(p=0.5, inplace=False)\n"
            "  (fc1): Linear(in_features=9216, out_features=128, bias=True)\n"
            "  (fc2): Linear(in_features=128, out_features=10, bias=True)\n"
            ")");
  const Cnn other({.rows = 7, .columns = 9, .conv2_channels = 5, .dropout1 = 0, .dropout2 = 0.75},
                  at::kFloat);
  EXPECT_NE(other.Description().find("(dropout1): Dropout(p=0.0, inplace"), std::string::npos);
  EXPECT_NE(other.Description().find("(dropout2): Dropout(p=0.75, inplace"), std::string::npos);
  EXPECT_NE(other.Description().find("(fc1): Linear(in_features=10,"), std::string::npos);
}

// Parameters that Python can reproduce exactly: value k of parameter j is scale ((7919 k + 31 j) mod 1009 / 504 - 1),
// with scale 2 / sqrt(fan-in) for weights, 0.1 for biases.
void SetParameters(const Cnn& cnn) {
  const std::vector<at::Tensor> parameters = cnn.parameters();
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const at::Tensor values = at::empty(parameters[j].sizes(), at::kDouble);
    const bool weight = parameters[j].dim() > 1;
    const double fan_in = weight ? parameters[j][0].numel() : 1;
    const double scale = weight ? 2 / std::sqrt(fan_in) : 0.1;
    for (std::int64_t k = 0; k < values.numel(); ++k) {
      values.data_ptr<double>()[k] = scale * ((7919 * k + 31 * j) % 1009 / 504.0 - 1);
    }
    parameters[j].detach().copy_(values);
  }
}

// Pixel k is (k^2 mod 263) k mod 251 / 250.
at::Tensor Images(std::int64_t samples) {
  at::Tensor images = at::empty({samples, 1, 28, 28}, at::kDouble);
  for (std::int64_t k = 0; k < images.numel(); ++k) {
    images.data_ptr<double>()[k] = k * k % 263 * k % 251 / 250.0;
  }
  return images;
}

// log_softmax of three images by PyTorch 2.11.0 in Python, in float64.
constexpr double kOutput[3][10] = {
    {-2.0200918221952144, -2.5073594234699463, -2.252504879364257, -2.0864807910761067, -2.327588501148809,
     -1.9485388199581164, -2.513972390182081, -2.5917478032345977, -2.5007007813497832, -2.5416100787240725},
    {-2.0713561480648455, -2.499378712024087, -2.307392742124718, -2.503060130308776, -2.386986953256657,
     -2.0108564571819567, -2.2862560907793097, -2.186195161259821, -2.353423919219363, -2.5812201038931546},
    {-2.129533355521531, -2.562318756351556, -2.2130743711354945, -2.4095668719422543, -2.3761162415217694,
     -1.9059841158685782, -2.4081422607680705, -2.2766048238407395, -2.3905251178839353, -2.538554275472753},
};

// Gradients of the mean negative log-likelihood of labels 3, 0, 7: norm, and the value in the middle.
struct KnownGradient {
  double norm, middle;
};
constexpr std::array<KnownGradient, 8> kGradients = {{
    {0.3425249489393459, -0.010203579949968452},
    {0.1813795747897388, -0.052778960718409554},
    {1.117642450531565, -0.0005027379901381999},
    {0.09322254692168397, -0.012397950317476024},
    {36.87370733403545, 0.008164257595095514},
    {0.43650971493792995, 0.002605943546222605},
    {1.2635144481235272, 0.005099759717353443},
    {0.4720526366136723, 0.14167744524982134},
}};

// A sum of n products, in any order, is within n eps sum |products| of the exact one. Weights are at most
// 2 / sqrt(n), so that sum |products| is at most 2 sqrt(n) times the size of a layer's inputs, which the
// mixed signs keep near 1. Added over the layers' 9, 288, 9216 and 128 products, with the largest factor,
// 192.
constexpr double kSumRounding = (9 + 288 + 9216 + 128) * 192.0;

TEST(Cnn, ForwardIsThatOfPyTorch) {
  Cnn cnn({}, at::kDouble);
  SetParameters(cnn);
  cnn.SetTraining(false);
  const at::Tensor y = cnn.Forward(Images(3));
  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{3, 10}));
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 10; ++k) EXPECT_NEAR(y[i][k].item<double>(), kOutput[i][k], kSumRounding * kEps);
  }
}

TEST(Cnn, Float32IsWithinItsRounding) {
  Cnn cnn({}, at::kFloat);
  SetParameters(cnn);
  cnn.SetTraining(false);
  const at::Tensor y = cnn.Forward(Images(3).to(at::kFloat));
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  // Rounding errors of either sign add like a random walk: the square root of the longest sum, 9216, and of
  // the 4 layers, times the values' size of 2.6 and the growth by one layer, below 2.
  const double bound = std::sqrt(9216.0) * 2 * 2.6 * 2 * 0x1p-24;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 10; ++k) EXPECT_NEAR(y[i][k].item<double>(), kOutput[i][k], bound);
  }
}

TEST(Cnn, GradientsAreThoseOfPyTorch) {
  Cnn cnn({}, at::kDouble);
  SetParameters(cnn);
  cnn.SetTraining(false);
  const at::Tensor labels = at::tensor(at::ArrayRef<std::int64_t>({3, 0, 7}), at::kLong);
  const models::LossSum sum = models::RunModel(cnn, {.inputs = Images(3), .targets = labels});
  EXPECT_EQ(sum.count, 3);
  const at::Tensor loss = sum.sum / 3;
  EXPECT_NEAR(loss.item<double>(), 2.1448139209938972, kSumRounding * kEps);
  loss.backward();
  const std::vector<at::Tensor> parameters = cnn.parameters();
  ASSERT_EQ(parameters.size(), kGradients.size());
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const at::Tensor gradient = parameters[j].grad().flatten();
    const double norm = kGradients[j].norm;
    EXPECT_NEAR(gradient.norm().item<double>(), norm, kSumRounding * kEps * norm) << j;
    EXPECT_NEAR(gradient[gradient.numel() / 2].item<double>(), kGradients[j].middle,
                kSumRounding * kEps * norm)
        << j;
  }
}

// One image of one channel or more, by loops.
struct Planes {
  std::int64_t channels, rows, columns;
  std::vector<double> values;

  Planes(std::int64_t c, std::int64_t r, std::int64_t s)
      : channels(c), rows(r), columns(s), values(c * r * s) {}
  double& at(std::int64_t c, std::int64_t r, std::int64_t s) { return values[(c * rows + r) * columns + s]; }
};

Planes ConvolvedRelu(Planes x, const at::Tensor& weight, const at::Tensor& bias) {
  Planes y(weight.size(0), x.rows - 2, x.columns - 2);
  const auto w = weight.accessor<double, 4>();
  for (std::int64_t c = 0; c < y.channels; ++c) {
    for (std::int64_t r = 0; r < y.rows; ++r) {
      for (std::int64_t s = 0; s < y.columns; ++s) {
        double sum = bias[c].item<double>();
        for (std::int64_t k = 0; k < 9 * x.channels; ++k) {
          sum += w[c][k / 9][k % 9 / 3][k % 3] * x.at(k / 9, r + k % 9 / 3, s + k % 3);
        }
        y.at(c, r, s) = std::max(sum, 0.0);
      }
    }
  }
  return y;
}

Planes Pooled(Planes x) {
  Planes y(x.channels, x.rows / 2, x.columns / 2);
  for (std::int64_t c = 0; c < y.channels; ++c) {
    for (std::int64_t r = 0; r < y.rows; ++r) {
      for (std::int64_t s = 0; s < y.columns; ++s) {
        y.at(c, r, s) = std::max({x.at(c, 2 * r, 2 * s), x.at(c, 2 * r, 2 * s + 1), x.at(c, 2 * r + 1, 2 * s),
                                  x.at(c, 2 * r + 1, 2 * s + 1)});
      }
    }
  }
  return y;
}

std::vector<double> Linear(const std::vector<double>& x, const at::Tensor& weight, const at::Tensor& bias) {
  std::vector<double> y;
  const auto w = weight.accessor<double, 2>();
  for (std::int64_t row = 0; row < weight.size(0); ++row) {
    y.push_back(bias[row].item<double>());
    for (std::size_t k = 0; k < x.size(); ++k) y.back() += w[row][k] * x[k];
  }
  return y;
}

std::vector<double> ByLoops(const std::vector<at::Tensor>& p, const Planes& image) {
  const Planes pooled = Pooled(ConvolvedRelu(ConvolvedRelu(image, p[0], p[1]), p[2], p[3]));
  std::vector<double> hidden = Linear(pooled.values, p[4], p[5]);
  for (double& value : hidden) value = std::max(value, 0.0);
  std::vector<double> logits = Linear(hidden, p[6], p[7]);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (double& logit : logits) logit -= std::log(sum);
  return logits;
}

// Odd sizes, so that pooling drops a row or a column, and rows differ from columns.
TEST(Cnn, ForwardIsTheSumsWrittenOut) {
  const CnnOptions options = {
      .rows = 9, .columns = 12, .conv1_channels = 3, .conv2_channels = 4, .hidden = 5, .classes = 6};
  Cnn cnn(options, at::kDouble);
  cnn.SetTraining(false);
  const at::Tensor x = at::rand({2, 1, 9, 12}, at::kDouble);
  const at::Tensor y = cnn.Forward(x);
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : cnn.parameters()) parameters.push_back(parameter.detach());
  for (std::int64_t i = 0; i < 2; ++i) {
    Planes image(1, 9, 12);
    std::copy_n(x[i].data_ptr<double>(), image.values.size(), image.values.begin());
    const std::vector<double> expected = ByLoops(parameters, image);
    ASSERT_EQ(expected.size(), 6u);
    // Sums of 10, 28, 33 and 6 numbers, weights below 1 / sqrt(fan-in): values stay below 4, and a layer's
    // error grows by at most sqrt(fan-in) < 6 in the next.
    for (int k = 0; k < 6; ++k) {
      EXPECT_NEAR(y[i][k].item<double>(), expected[k], (10 + 28 + 33 + 6) * 4 * 6 * kEps);
    }
  }
}

// PyTorch's own modules drawn from the same seed.
TEST(Cnn, StartsFromPyTorchsNumbersOnEveryWay) {
  const CnnOptions options = {
      .rows = 9, .columns = 12, .conv1_channels = 3, .conv2_channels = 4, .hidden = 5, .classes = 6};
  torch::manual_seed(3);
  const torch::nn::Conv2d conv1(1, 3, 3), conv2(3, 4, 3);
  const torch::nn::Linear fc1(4 * 2 * 4, 5), fc2(5, 6);
  const std::vector<at::Tensor> expected = {conv1->weight, conv1->bias, conv2->weight, conv2->bias,
                                            fc1->weight,   fc1->bias,   fc2->weight,   fc2->bias};
  torch::manual_seed(3);
  const Cnn direct(options, at::kDouble);
  Cnn meta(options, at::TensorOptions(at::kMeta).dtype(at::kDouble));
  torch::manual_seed(3);
  const std::vector<models::ParameterUnit> units = meta.units();
  ASSERT_EQ(units.size(), 5u);
  EXPECT_TRUE(units[0].parameters.empty());
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      EXPECT_TRUE(parameter.tensor.is_meta()) << parameter.name;
      models::Materialize(parameter.tensor, at::empty(parameter.tensor.sizes(), at::kDouble));
    }
    meta.ResetParameters(unit);
  }
  for (std::size_t j = 0; j < expected.size(); ++j) {
    EXPECT_TRUE(direct.parameters()[j].equal(expected[j].to(at::kDouble))) << j;
    EXPECT_TRUE(meta.parameters()[j].equal(direct.parameters()[j])) << j;
  }
  EXPECT_EQ(units[3].name, "fc1");
  EXPECT_EQ(units[3].parameters[0].name, "fc1.weight");
  EXPECT_TRUE(units[3].parameters[0].tensor.is_same(meta.parameters()[4]));
}

TEST(Cnn, BlocksAreTheLayers) {
  Cnn cnn({.rows = 9, .columns = 12, .conv1_channels = 3, .conv2_channels = 4, .hidden = 5, .classes = 6},
          at::kDouble);
  cnn.SetTraining(false);
  const at::Tensor x = at::rand({2, 1, 9, 12}, at::kDouble);
  const at::Tensor direct = cnn.Forward(x);
  std::vector<std::int64_t> sizes;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    EXPECT_EQ(block, sizes.size());
    sizes.push_back(input.hidden.size(1));
    EXPECT_TRUE(cnn.blocks()[block]->Parameters()[1].is_same(cnn.parameters()[2 * block + 1]));
    return cnn.blocks()[block]->Forward(input, context);
  };
  EXPECT_TRUE(models::RunOutput(cnn, {.inputs = x, .targets = {}}, run).equal(direct));
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{1, 3, 32, 5}));
}

constexpr std::int64_t kFeatures = 100, kSamples = 2000;

// A network that shows what dropout leaves, sample by sample: convolutions and pooling give ones, the hidden
// value is the mean of 100 features, the first logit is the hidden value, the second is zero.
std::vector<double> LeftByDropout(const CnnOptions& dropout, bool training) {
  Cnn cnn({.rows = 14,
           .columns = 14,
           .conv1_channels = 1,
           .conv2_channels = 4,
           .hidden = 1,
           .classes = 2,
           .dropout1 = dropout.dropout1,
           .dropout2 = dropout.dropout2},
          at::kDouble);
  if (!training) cnn.SetTraining(false);
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : cnn.parameters()) parameters.push_back(parameter.detach().zero_());
  parameters[3].fill_(1);
  parameters[4].fill_(1.0 / kFeatures);
  parameters[6][0].fill_(1);
  const at::Tensor y = cnn.Forward(at::ones({kSamples, 1, 14, 14}, at::kDouble)).detach();
  std::vector<double> left;
  for (std::int64_t i = 0; i < kSamples; ++i) left.push_back(y[i][0].item<double>() - y[i][1].item<double>());
  return left;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

// Sums of 100 numbers and a log-softmax of values below 4.
constexpr double kLeftRounding = 128 * 4 * kEps;

TEST(CnnDropout, IsAbsentOutsideTraining) {
  for (const double left : LeftByDropout({}, false)) EXPECT_NEAR(left, 1, kLeftRounding);
}

// What is left of 100 ones is a whole number of features, each grown by 1 / (1 - p); its mean is 1 with a
// variance of p / (1 - p) / 100 a sample. Six standard deviations: one run of 5e8 fails.
TEST(CnnDropout, FirstActsOnSingleFeatures) {
  const double p = 0.25;
  const std::vector<double> left = LeftByDropout({.dropout1 = p, .dropout2 = 0}, true);
  std::int64_t whole_channels = 0;
  for (const double value : left) {
    const double kept = value * kFeatures * (1 - p);
    EXPECT_NEAR(kept, std::round(kept), kFeatures * kLeftRounding);
    whole_channels += std::lround(kept) % 25 == 0;
  }
  EXPECT_NEAR(Mean(left), 1, 6 * std::sqrt(p / (1 - p) / kFeatures / kSamples));
  // About one in ten by chance (75 of 100, mostly); all, were whole channels dropped.
  EXPECT_LT(whole_channels, kSamples / 2);
}

TEST(CnnDropout, SecondActsOnHiddenValues) {
  const std::vector<double> left = LeftByDropout({.dropout1 = 0, .dropout2 = 0.5}, true);
  for (const double value : left) EXPECT_NEAR(std::abs(value - 1), 1, 2 * kLeftRounding);
  EXPECT_NEAR(Mean(left), 1, 6 * std::sqrt(1.0 / kSamples));
}

TEST(CnnDeathTest, RefusesImagesOfAnotherSize) {
  Cnn cnn({}, at::kFloat);
  EXPECT_DEATH(cnn.Forward(at::ones({2, 1, 28, 27})), "expected \\(batch, 1, 28, 28\\)");
  EXPECT_DEATH(cnn.Forward(at::ones({2, 784})), "expected \\(batch, 1, 28, 28\\)");
  EXPECT_DEATH(Cnn({.rows = 5}, at::kFloat), "images of 5 x 28");
}

}  // namespace
}  // namespace plait::cnn
