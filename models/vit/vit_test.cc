// Logits, loss and gradients against the model written in LibTorch's operators.
#include "models/vit/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "models/vit/testing/operators.h"

namespace plait::vit {
namespace {

struct Variant {
  Pool pool;
  bool qkv_bias;
  Attention attention;
};

// Heads are not as wide as the model together; 35 tokens are more than one block of queries of the own kernels.
VitOptions Small(const Variant& variant) {
  return {.image_size = 12,
          .patch_size = 2,
          .dim = 24,
          .depth = 2,
          .heads = 3,
          .head_dim = 4,
          .mlp_dim = 20,
          .classes = 7,
          .qkv_bias = variant.qkv_bias,
          .pool = variant.pool,
          .attention = variant.attention};
}

Vit Drawn(const VitOptions& options, at::ScalarType type) {
  torch::manual_seed(5);
  Vit vit(options, type);
  for (const at::Tensor& parameter : vit.parameters()) {
    const at::Tensor numbers = at::randn(parameter.sizes(), at::kDouble) * 0.3;
    parameter.detach().copy_(parameter.dim() == 1 ? numbers + 0.7 : numbers);
  }
  return vit;
}

// Sums in orders of their own: the longest chain has, per block, norms of 24 (twice), products of 24, 12, 24, 20
// terms, attention of 4 and 37, and before and behind them 12, 36, 24, 24. Values are below 8, norms scale by less
// than 4; a gradient takes the way twice.
constexpr double kLength = 2 * (24 + 24 + 24 + 12 + 24 + 20 + 4 + 37) + 12 + 36 + 24 + 24;
constexpr double kBound = kLength * 8 * 4;

class VitAgainstOperators : public ::testing::TestWithParam<Variant> {
 protected:
  // Largest errors of logits, loss and gradients; the latter relative to the largest of a parameter, at least 1.
  struct Errors {
    double logits, loss, gradients;
  };
  Errors Compare(at::ScalarType type) {
    const VitOptions options = Small(GetParam());
    Vit mine = Drawn(options, type);
    Vit exact = Drawn(options, at::kDouble);
    const at::NoGradGuard no_copy;
    for (std::size_t j = 0; j < mine.parameters().size(); ++j) {
      exact.parameters()[j].copy_(mine.parameters()[j]);
    }
    const at::AutoGradMode recording(true);
    const at::Tensor images = at::randn({5, 3, 12, 12}, at::kDouble).to(type);
    const at::Tensor labels = at::tensor(at::ArrayRef<std::int64_t>({3, 0, -1, 6, 6}), at::kLong);
    const models::LossSum loss = models::RunModel(mine, {images, labels});
    EXPECT_EQ(loss.count, 4);
    const at::Tensor logits = testing::LogitsByOperators(exact, images.to(at::kDouble));
    const at::Tensor expected =
        at::nll_loss(at::log_softmax(logits, 1), labels, {}, at::Reduction::Sum, /*ignore_index=*/-1);
    loss.sum.backward();
    expected.backward();
    Errors errors = {(mine.Forward(images).to(at::kDouble) - logits).abs().max().item<double>(),
                     std::abs(loss.sum.item<double>() - expected.item<double>()), 0};
    for (std::size_t j = 0; j < mine.parameters().size(); ++j) {
      const at::Tensor theirs = exact.parameters()[j].grad();
      const double largest = std::max(1.0, theirs.abs().max().item<double>());
      const at::Tensor difference = mine.parameters()[j].grad().to(at::kDouble) - theirs;
      errors.gradients =
          std::max(errors.gradients, base::NanIsInfinite(difference.abs().max().item<double>() / largest));
      EXPECT_GT(theirs.norm().item<double>(), 1e-3) << j;
    }
    return errors;
  }
};

TEST_P(VitAgainstOperators, InFloat64) {
  const Errors errors = Compare(at::kDouble);
  EXPECT_LE(errors.logits, kBound * 0x1p-53);
  EXPECT_LE(errors.loss, 4 * kBound * 0x1p-53);
  EXPECT_LE(errors.gradients, 2 * kBound * 0x1p-53);
}

TEST_P(VitAgainstOperators, InFloat32) {
  const Errors errors = Compare(at::kFloat);
  EXPECT_LE(errors.logits, kBound * 0x1p-24);
  EXPECT_LE(errors.loss, 4 * kBound * 0x1p-24);
  EXPECT_LE(errors.gradients, 2 * kBound * 0x1p-24);
}

// Each stored number is rounded to 8 bits; roundings of the sums' terms cancel: the root of their number.
TEST_P(VitAgainstOperators, InBFloat16) {
  const Errors errors = Compare(at::kBFloat16);
  const double bound = std::sqrt(kLength) * 8 * 0x1p-8;
  EXPECT_LE(errors.logits, bound);
  EXPECT_LE(errors.loss, 4 * bound);
  EXPECT_LE(errors.gradients, 2 * bound);
}

INSTANTIATE_TEST_SUITE_P(Variants, VitAgainstOperators,
                         ::testing::Values(Variant{Pool::kMean, false, Attention::kSdpa},
                                           Variant{Pool::kMean, false, Attention::kMath},
                                           Variant{Pool::kClassToken, true, Attention::kSdpa}));

// A rank may have no sample of a batch: no loss, gradients of zero.
TEST(Vit, TakesAnEmptyBatch) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const double dropout : {0.0, 0.1}) {
      VitOptions options = Small({dropout > 0 ? Pool::kMean : Pool::kClassToken, true, Attention::kSdpa});
      options.dropout = dropout;
      Vit vit(options, type);
      const models::LossSum loss =
          models::RunModel(vit, {at::empty({0, 3, 12, 12}, type), at::empty({0}, at::kLong)});
      EXPECT_EQ(loss.count, 0);
      EXPECT_EQ(loss.sum.item<double>(), 0);
      loss.sum.backward();
      for (const at::Tensor& parameter : vit.parameters()) {
        EXPECT_EQ(parameter.grad().abs().sum().item<double>(), 0);
      }
    }
  }
}

TEST(VitDeathTest, RefusesWhatItCannotRead) {
  Vit vit(Small({Pool::kMean, false, Attention::kSdpa}), at::kFloat);
  EXPECT_DEATH(vit.Forward(at::randn({2, 3, 12, 10})), "expected \\(batch, 3, 12, 12\\)");
  EXPECT_DEATH(vit.Forward(at::randn({2, 1, 12, 12})), "images of shape \\[2, 1, 12, 12\\]");
  EXPECT_DEATH(models::RunModel(vit, {at::randn({2, 3, 12, 12}), at::zeros({3}, at::kLong)}),
               "targets of shape \\[3\\]");
  EXPECT_DEATH(Vit({.patch_size = 15}, at::kFloat), "image_size is 224; expected a multiple of patch_size");
}

}  // namespace
}  // namespace plait::vit
