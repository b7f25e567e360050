#include "parallel/dropout/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/testing/same_on_threads.h"

namespace plait::dropout {
namespace {

constexpr std::int64_t kRows = 40, kColumns = 50;
const at::Tensor& Rows() {
  static const at::Tensor rows = at::arange(kRows, at::kLong);
  return rows;
}
Elements Whole() { return {Rows(), kColumns}; }

TEST(Dropout, PartsHaveTheMaskOfTheWhole) {
  const at::Tensor x = at::randn({kRows, kColumns}, at::kDouble);
  const Mask mask = {.probability = 0.3, .seed = 5};
  const at::Tensor whole = Dropout(x, mask, Whole());
  // Rows in any order, and columns from the middle.
  const at::Tensor some = at::tensor({7, 3, 39}, at::kLong);
  EXPECT_TRUE(Dropout(x.index_select(0, some), mask, {some, kColumns}).equal(whole.index_select(0, some)));
  EXPECT_TRUE(Dropout(x.narrow(1, 20, 9), mask, {Rows(), kColumns, 20}).equal(whole.narrow(1, 20, 9)));
}

TEST(Dropout, ColumnsInAnyOrderHaveTheMaskOfTheWhole) {
  const at::Tensor x = at::randn({kRows, kColumns}, at::kDouble).requires_grad_(true);
  const Mask mask = {.probability = 0.3, .seed = 5};
  const at::Tensor whole = Dropout(x.detach(), mask, Whole()), some = at::tensor({7, 49, 0}, at::kLong);
  const at::Tensor part = Dropout(x.index_select(1, some), mask, {Rows(), kColumns, 0, some});
  EXPECT_TRUE(part.equal(whole.index_select(1, some)));
  part.backward(at::ones_like(part));
  EXPECT_TRUE(x.grad().index_select(1, some).ne(0).equal(part.detach().ne(0)));
  const Elements elements = {Rows(), kColumns, 0, some};
  EXPECT_TRUE(internal::Kept(part.detach(), mask, elements).equal(part.detach().ne(0)));
}

// Any part of heads, queries and keys.
TEST(Dropout, PartsOfProbabilitiesHaveTheMaskOfTheWhole) {
  constexpr std::int64_t kSamples = 3, kHeads = 4, kLength = 6;
  const at::Tensor p = at::randn({kSamples, kHeads, kLength, kLength}, at::kDouble);
  const at::Tensor all = at::arange(kLength, at::kLong);
  const ProbabilityDropout whole = {.mask = {.probability = 0.4, .seed = 3}, .whole_heads = kHeads};
  const at::Tensor expected = DropProbabilities(p, whole, all, all, kLength);
  ProbabilityDropout part = whole;
  part.first_sample = 1;
  part.first_head = 2;
  const at::Tensor queries = at::tensor({1, 5}, at::kLong), keys = at::tensor({0, 4, 5}, at::kLong);
  const auto cut = [&](const at::Tensor& x) {
    return x.narrow(0, 1, 2).narrow(1, 2, 1).index_select(2, queries).index_select(3, keys);
  };
  EXPECT_TRUE(DropProbabilities(cut(p), part, queries, keys, kLength).equal(cut(expected)));
}

TEST(Dropout, KeepsAndScales) {
  const double p = 0.3;
  const at::Tensor x = at::ones({1000, 1000}, at::kDouble);
  const at::Tensor y = Dropout(x, {.probability = p, .seed = 5}, {at::arange(1000, at::kLong), 1000});
  const at::Tensor kept = y.gt(0);
  EXPECT_TRUE(y.equal(kept.to(at::kDouble) / (1 - p)));
  // Six standard deviations of a binomial distribution, in total, per row and per column; neighbours are
  // independent.
  const auto near = [](const at::Tensor& sample, double expected) {
    const double n = static_cast<double>(sample.numel());
    EXPECT_NEAR(sample.to(at::kDouble).mean().item<double>(), expected,
                6 * std::sqrt(expected * (1 - expected) / n));
  };
  near(kept, 1 - p);
  near(kept[17], 1 - p);
  near(kept.select(1, 17), 1 - p);
  near(kept.narrow(1, 1, 999).logical_and(kept.narrow(1, 0, 999)), (1 - p) * (1 - p));
  near(kept.narrow(0, 1, 999).logical_and(kept.narrow(0, 0, 999)), (1 - p) * (1 - p));
}

// In 32 bits such a probability rounds to 1: 2^-32 of all is kept, not everything.
TEST(Dropout, AlmostAllMayBeDropped) {
  const Mask mask = {.probability = 1 - 1e-12, .seed = 5};
  EXPECT_EQ(
      Dropout(at::ones({kRows, kColumns}, at::kDouble), mask, Whole()).count_nonzero().item<std::int64_t>(),
      0);
}

TEST(Dropout, OtherSeedsHaveOtherMasks) {
  const at::Tensor x = at::ones({kRows, kColumns});
  const at::Tensor a = Dropout(x, {.probability = 0.5, .seed = 1}, Whole());
  const at::Tensor b = Dropout(x, {.probability = 0.5, .seed = 2}, Whole());
  const double same = a.eq(b).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(same, 0.5, 6 * 0.5 / std::sqrt(kRows * kColumns));
}

TEST(Dropout, GradientHasTheSameMask) {
  const at::Tensor x = at::randn({kRows, kColumns}, at::kDouble).requires_grad_(true);
  const at::Tensor g = at::randn({kRows, kColumns}, at::kDouble);
  const Mask mask = {.probability = 0.4, .seed = 9};
  Dropout(x, mask, Whole()).backward(g);
  EXPECT_TRUE(x.grad().equal(Dropout(g, mask, Whole())));
}

// y = m x with a mask m; the gradient of sum(y^3) is 3 m^3 x^2, and that of its sum 6 m^3 x.
TEST(Dropout, ItsGradientIsDifferentiatedAgain) {
  const at::Tensor x = at::randn({kRows, kColumns}, at::kDouble).requires_grad_(true);
  const Mask mask = {.probability = 0.5, .seed = 9};  // scales by 2, exactly
  const at::Tensor m = Dropout(at::ones_like(x.detach()), mask, Whole());
  const at::Tensor y = Dropout(x, mask, Whole());
  const at::Tensor once = torch::autograd::grad({(y * y * y).sum()}, {x}, {}, {}, /*create_graph=*/true)[0];
  const at::Tensor twice = torch::autograd::grad({once.sum()}, {x})[0], expected = m * m * m * x.detach() * 6;
  // A few roundings of each element.
  EXPECT_LE((twice - expected).abs().sub(expected.abs() * 0x1p-50).max().item<double>(), 0);
}

// A rounded scale 1 / (1 - p) would shift all numbers in one direction.
TEST(Dropout, HalfPrecisionIsRoundedOnce) {
  for (const auto& [type, rounding] : {std::pair{at::kBFloat16, 0x1p-8}, {at::kHalf, 0x1p-11}}) {
    const at::Tensor x = (at::rand({kRows, kColumns}) + 1).to(type);
    const Mask mask = {.probability = 0.1, .seed = 9};
    const at::Tensor y = Dropout(x, mask, Whole()).to(at::kDouble), exact = x.to(at::kDouble) / 0.9;
    const at::Tensor error = (y - exact).abs().mul_(y.ne(0)).div_(exact);
    // And the product in float32, twice.
    EXPECT_LE(error.max().item<double>(), rounding + 0x1p-23) << type;
  }
}

TEST(Dropout, OperatorsOfOtherDevicesMakeTheSameMask) {
  const at::Tensor x = at::ones({kRows, kColumns}, at::kDouble), rows = Rows() + (std::int64_t{1} << 40);
  const Mask mask = {.probability = 0.25, .seed = 0xdeadbeefcafef00dULL};
  const at::Tensor kept = internal::Kept(x, mask, {rows, kColumns, 3});
  EXPECT_TRUE(kept.equal(Dropout(x, mask, {rows, kColumns, 3}).gt(0)));
}

TEST(Dropout, ProbabilityZeroIsTheIdentity) {
  const at::Tensor x = at::randn({kRows, kColumns});
  EXPECT_TRUE(Dropout(x, {.probability = 0, .seed = 1}, Whole()).equal(x));
}

TEST(Dropout, ThreadsDoNotMatter) {
  const at::Tensor rows = at::arange(700, at::kLong);
  const at::Tensor x = at::randn({700, 200}).requires_grad_(true), g = at::randn({700, 200});
  ExpectSameOnThreads(2, [&] {
    const at::Tensor y = Dropout(x, {.probability = 0.3, .seed = 5}, {rows, 200});
    return std::vector<at::Tensor>{torch::autograd::grad({y}, {x}, {g})[0], y.detach()};
  });
}

}  // namespace
}  // namespace plait::dropout
