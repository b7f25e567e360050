// Batched layers against single ones.
#include "models/stacked/layers.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <vector>

namespace plait::stacked {
namespace {

constexpr std::int64_t kCount = 3, kBatch = 4;

class StackedTest : public testing::Test {
 protected:
  StackedTest() { at::manual_seed(5); }
};

at::Tensor Draw(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); }

// Sums of at most 40 products of normal numbers, made in another order: 2 k u sum |a b| with a wide margin.
void ExpectNear(const at::Tensor& actual, const at::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LE((actual - expected).abs().max().item<double>(), 2 * 40 * 0x1p-53 * 200);
}

TEST_F(StackedTest, TensorsThatLieInARowAreNotCopied) {
  const at::NoGradGuard no_grad;
  const at::Tensor all = Draw({6, 2, 3});
  const at::Tensor some = Stacked({all[0], all[2], all[4]});
  EXPECT_EQ(some.data_ptr(), all.data_ptr());
  EXPECT_TRUE(some.equal(at::stack({all[0], all[2], all[4]})));
  const at::Tensor transposed = Stacked({all[1].t(), all[2].t()});
  EXPECT_EQ(transposed.data_ptr(), all[1].data_ptr());
  EXPECT_TRUE(transposed.equal(all.narrow(0, 1, 2).transpose(1, 2)));
  const at::Tensor one = Stacked({all[3], all[3], all[3]});
  EXPECT_EQ(one.stride(0), 0);
  EXPECT_TRUE(one.equal(at::stack({all[3], all[3], all[3]})));
}

TEST_F(StackedTest, OthersAreCopied) {
  const at::NoGradGuard no_grad;
  const at::Tensor all = Draw({6, 2, 3}), other = Draw({2, 3});
  for (const std::vector<at::Tensor>& tensors : {std::vector<at::Tensor>{all[0], all[1], all[3]},
                                                 {all[4], all[2], all[0]},
                                                 {all[0], other, all[2]},
                                                 {all[0], all[2], all[1].view({3, 2}).t().contiguous()}}) {
    EXPECT_TRUE(Stacked(tensors).equal(at::stack(tensors)));
  }
  // Same place, other strides.
  const at::Tensor square = Draw({2, 3, 3});
  EXPECT_TRUE(Stacked({square[0], square[1].t()}).equal(at::stack({square[0], square[1].t()})));
  EXPECT_FALSE(Stacked({at::Tensor(), at::Tensor()}).defined());
}

TEST_F(StackedTest, WhatIsRecordedHasGradients) {
  const at::Tensor all = Draw({2, 3}).requires_grad_(true);
  Stacked({all[0], all[1]}).sum().backward();
  EXPECT_TRUE(all.grad().equal(at::ones({2, 3}, at::kDouble)));
}

TEST_F(StackedTest, Linear) {
  const at::NoGradGuard no_grad;
  const at::Tensor weight = Draw({kCount, 7, 5}), bias = Draw({kCount, 7});
  for (const at::Tensor& x : {Draw({kCount, kBatch, 5}), Draw({kCount, kBatch, 2, 5}), Draw({kCount, 5})}) {
    for (std::int64_t i = 0; i < kCount; ++i) {
      ExpectNear(stacked::Linear(x, weight, bias)[i], at::linear(x[i], weight[i], bias[i]));
      ExpectNear(stacked::Linear(x, weight, {})[i], at::linear(x[i], weight[i]));
      const at::Tensor one = Stacked({weight[1], weight[1], weight[1]});
      ExpectNear(stacked::Linear(x, one, Stacked({bias[2], bias[2], bias[2]}))[i],
                 at::linear(x[i], weight[1], bias[2]));
      ExpectNear(stacked::Linear(x, one, {})[i], at::linear(x[i], weight[1]));
      ExpectNear(stacked::Linear(x, one, bias)[i], at::linear(x[i], weight[1], bias[i]));
    }
  }
}

TEST_F(StackedTest, Convolution) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = Draw({kCount, kBatch, 2, 6, 5}), weight = Draw({kCount, 3, 2, 3, 3}),
                   bias = Draw({kCount, 3});
  const at::Tensor line = Draw({kCount, kBatch, 2, 8}), narrow = Draw({kCount, 3, 2, 3});
  const at::Tensor one = Stacked({weight[1], weight[1], weight[1]});
  for (const std::int64_t padding : {0, 1}) {
    for (std::int64_t i = 0; i < kCount; ++i) {
      ExpectNear(stacked::Convolution(x, weight, bias, padding)[i],
                 at::conv2d(x[i], weight[i], bias[i], 1, padding));
      ExpectNear(stacked::Convolution(x, weight, {}, padding)[i],
                 at::conv2d(x[i], weight[i], {}, 1, padding));
      ExpectNear(stacked::Convolution(x, one, {}, padding)[i], at::conv2d(x[i], weight[1], {}, 1, padding));
      ExpectNear(stacked::Convolution(line, narrow, bias, padding)[i],
                 at::conv1d(line[i], narrow[i], bias[i], 1, padding));
    }
  }
}

TEST_F(StackedTest, LayerNorm) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = Draw({kCount, kBatch, 2, 5}), weight = Draw({kCount, 5}), bias = Draw({kCount, 5});
  for (std::int64_t i = 0; i < kCount; ++i) {
    ExpectNear(stacked::LayerNorm(x, weight, bias, 1e-5)[i],
               at::layer_norm(x[i], {5}, weight[i], bias[i], 1e-5));
    ExpectNear(stacked::LayerNorm(x, weight, {}, 1e-5)[i], at::layer_norm(x[i], {5}, weight[i], {}, 1e-5));
  }
}

TEST_F(StackedTest, RmsNorm) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = Draw({kCount, kBatch, 2, 5}), weight = Draw({kCount, 5});
  for (std::int64_t i = 0; i < kCount; ++i) {
    const at::Tensor scale = (x[i].square().mean({-1}, /*keepdim=*/true) + 1e-2).rsqrt();
    ExpectNear(stacked::RmsNorm(x, weight, 1e-2)[i], x[i] * scale * weight[i]);
  }
}

TEST_F(StackedTest, AddScaled) {
  const at::NoGradGuard no_grad;
  const at::Tensor u = Draw({kCount, kBatch, 5}), f = Draw({kCount, kBatch, 5});
  const std::vector<std::vector<double>> scales = {{0.3, 0.3, 0.3}, {0.3, -2, 7}};
  for (const std::vector<double>& scale : scales) {
    for (std::int64_t i = 0; i < kCount; ++i) {
      ExpectNear(stacked::AddScaled(u, f, scale)[i], u[i] + scale[i] * f[i]);
      const at::Tensor single = stacked::AddScaled(u.to(at::kFloat), f.to(at::kFloat), scale)[i];
      EXPECT_EQ(single.scalar_type(), at::kFloat);
      EXPECT_LE((single.to(at::kDouble) - u[i] - scale[i] * f[i]).abs().max().item<double>(), 100 * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace plait::stacked
