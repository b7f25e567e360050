// Products of groups of rows against float64 products of LibTorch, group by group.
#include "models/linear/grouped.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/keep_freed_memory.h"
#include "base/testing/same_on_threads.h"
#include "models/linear/kernels/product.h"
#include "models/linear/multiply.h"

namespace plait::linear {
namespace {

using Offsets = std::vector<std::int64_t>;
using Setting = std::tuple<at::ScalarType, GroupKernels>;

Offsets OffsetsOf(const std::vector<std::int64_t>& counts, std::int64_t first = 0) {
  Offsets offsets = {first};
  for (const std::int64_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

at::Tensor Double(const at::Tensor& t) { return t.to(at::kDouble); }
at::Tensor NanLike(const at::Tensor& t) { return at::full_like(t, std::numeric_limits<double>::quiet_NaN()); }

// Fills memory with NaN and frees it, so that the next allocations are likely to get it.
void PoisonFreedMemory() {
  base::KeepFreedMemory();
  at::full({1 << 22}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
}

class GroupedTest : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override { at::manual_seed(11); }
  static at::ScalarType Type() { return std::get<0>(GetParam()); }
  static GroupKernels Kernels() { return std::get<1>(GetParam()); }
  static at::Tensor Draw(at::IntArrayRef shape) { return at::randn(shape, at::kDouble).to(Type()); }
  // -2 to 2: sums of up to 60 products are exact in every type.
  static at::Tensor DrawIntegers(at::IntArrayRef shape) {
    return at::randint(-2, 3, shape, at::kDouble).to(Type());
  }

  // Element by element: 8 u sum |a b| for the sum (linear_test.cc derives it, for terms of independent signs; it is a
  // bound for up to 8 terms), with u = 2^-24 or 2^-53, and in bfloat16 2^-8 of all that is rounded: of the result,
  // and of LibTorch's also of the product before it is added to something.
  static void ExpectNear(const at::Tensor& actual, const at::Tensor& exact, const at::Tensor& magnitude,
                         const std::string& what) {
    ASSERT_EQ(actual.sizes(), exact.sizes()) << what;
    const double u = Type() == at::kDouble ? 0x1p-53 : 0x1p-24, stored = Type() == at::kBFloat16 ? 0x1p-8 : u;
    const bool by_libtorch = Kernels() == GroupKernels::kLoop || !HasOwnProducts(actual);
    const at::Tensor of_addends = by_libtorch ? magnitude * stored : at::zeros_like(magnitude);
    const at::Tensor bound = magnitude * (8 * u) + exact.abs() * stored + of_addends + 1e-300;
    EXPECT_FALSE(actual.isnan().any().item<bool>()) << what;
    if (actual.numel() == 0) return;
    EXPECT_LE(((Double(actual) - exact).abs() / bound).max().item<double>(), 1) << what;
  }
};

// Products of each group in float64, with `sign` for abs.
template <typename Sign>
at::Tensor ExactProduct(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
                        const Offsets& offsets, const Sign& sign) {
  std::vector<at::Tensor> results;
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    const at::Tensor rows = left.narrow(0, offsets[g] - offsets[0], offsets[g + 1] - offsets[g]);
    const at::Tensor product = at::matmul(sign(Double(rows)), sign(Double(right[g])));
    results.push_back(bias.defined() ? product + sign(Double(bias[g])) : product);
  }
  return at::cat(results);
}
at::Tensor AsItIs(const at::Tensor& t) { return t; }
at::Tensor Absolute(const at::Tensor& t) { return t.abs(); }

struct Shape {
  std::int64_t inner, columns;
  std::vector<std::int64_t> counts;
};

// Groups without rows at both ends and between, few rows, more than a chunk of k, columns of one vector and of panels.
std::vector<Shape> Shapes() {
  std::vector<std::int64_t> all(66);
  for (std::int64_t i = 0; i < 66; ++i) all[i] = i * 37 % 66;
  return {{1, 1, {1, 0, 2}},     {7, 5, {0, 3, 0, 0, 65, 0}}, {16, 33, all},      {24, 70, {64, 15, 31}},
          {2051, 40, {5, 0, 3}}, {31, 129, {1100, 0, 1, 14}}, {6, 16, {0, 0, 0}}, {5, 64, {}}};
}

TEST_P(GroupedTest, ProductsAreThoseOfFloat64) {
  for (const Shape& s : Shapes()) {
    const Offsets offsets = OffsetsOf(s.counts);
    const auto groups = static_cast<std::int64_t>(s.counts.size());
    const at::Tensor left = Draw({offsets.back(), s.inner}), bias = Draw({groups, s.columns});
    for (const bool transposed : {false, true}) {
      for (const bool with_bias : {false, true}) {
        const std::string what = std::to_string(s.inner) + " x " + std::to_string(s.columns) +
                                 (transposed ? ", transposed" : "") + (with_bias ? ", bias" : "");
        const at::Tensor right = transposed ? Draw({groups, s.columns, s.inner}).transpose(1, 2)
                                            : Draw({groups, s.inner, s.columns});
        const at::Tensor addend = with_bias ? bias : at::Tensor();
        const at::Tensor out = NanLike(at::empty({offsets.back(), s.columns}, left.options()));
        PoisonFreedMemory();
        MultiplyGroups(left, right, offsets, out, {.bias = addend}, Kernels());
        if (groups == 0) continue;
        const at::Tensor exact = ExactProduct(left, right, addend, offsets, AsItIs),
                         magnitude = ExactProduct(left, right, addend, offsets, Absolute);
        ExpectNear(out, exact, magnitude, what);
        const at::Tensor before = Draw(out.sizes()), sum = before.clone();
        MultiplyGroups(left, right, offsets, sum, {.bias = addend, .adds_to_out = true}, Kernels());
        ExpectNear(sum, exact + Double(before), magnitude + Double(before).abs(), what + ", added");
      }
    }
  }
}

TEST_P(GroupedTest, GradientsAreThoseOfFloat64) {
  for (const Shape& s : Shapes()) {
    const Offsets offsets = OffsetsOf(s.counts);
    const auto groups = static_cast<std::int64_t>(s.counts.size());
    const at::Tensor left = Draw({offsets.back(), s.columns}), right = Draw({offsets.back(), s.inner});
    const at::Tensor of_weight = NanLike(at::empty({groups, s.columns, s.inner}, left.options())),
                     of_bias = NanLike(at::empty({groups, s.columns}, left.options()));
    PoisonFreedMemory();
    GroupWeightGradients(left, right, offsets, of_weight, Kernels());
    GroupBiasGradients(left, offsets, of_bias, Kernels());
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::string what = std::to_string(s.inner) + " x " + std::to_string(s.columns) + ", group " +
                               std::to_string(g) + " of " + std::to_string(s.counts[g]);
      const auto of_group = [&](const at::Tensor& t) { return Double(t.narrow(0, offsets[g], s.counts[g])); };
      const at::Tensor a = of_group(left), b = of_group(right);
      ExpectNear(of_weight[g], at::matmul(a.t(), b), at::matmul(a.abs().t(), b.abs()), what + ", weight");
      ExpectNear(of_bias[g], a.sum(0), a.abs().sum(0), what + ", bias");
    }
  }
}

// Views: rows within wider ones, a part of the offsets, gradients with strides of zero, results that leave gaps.
TEST_P(GroupedTest, OperandsMayBeViews) {
  const Offsets offsets = OffsetsOf({9, 0, 33}, 100);
  const at::Tensor left = Draw({42, 50}).narrow(1, 3, 21), rows_apart = Draw({21, 42}).t(),
                   right = Draw({3, 40, 30}).narrow(1, 5, 21).narrow(2, 1, 28);
  for (const at::Tensor& a :
       {left, rows_apart, Draw({42, 1}).expand({42, 21}), Draw({1, 21}).expand({42, 21})}) {
    const at::Tensor wide = Draw({42, 60}), before = wide.clone(), out = wide.narrow(1, 16, 28);
    MultiplyGroups(a, right, offsets, out, {}, Kernels());
    ExpectNear(out, ExactProduct(a, right, {}, offsets, AsItIs),
               ExactProduct(a, right, {}, offsets, Absolute), "view");
    EXPECT_TRUE(wide.narrow(1, 0, 16).equal(before.narrow(1, 0, 16)));
    EXPECT_TRUE(wide.narrow(1, 44, 16).equal(before.narrow(1, 44, 16)));
    const at::Tensor of_weight = at::empty({3, 21, 28}, a.options());
    GroupWeightGradients(a, before.narrow(1, 7, 28), offsets, of_weight, Kernels());
    const at::Tensor x = Double(a.narrow(0, 9, 33)), y = Double(before.narrow(1, 7, 28).narrow(0, 9, 33));
    ExpectNear(of_weight[2], at::matmul(x.t(), y), at::matmul(x.abs().t(), y.abs()),
               "weight gradient of views");
    EXPECT_EQ(of_weight[1].count_nonzero().item<std::int64_t>(), 0);
  }
}

// Integers: every order of summation has the same bits.
TEST_P(GroupedTest, IntegersAreExact) {
  const Offsets offsets = OffsetsOf({1, 0, 13, 14, 15, 17, 0});
  const at::Tensor left = DrawIntegers({60, 37}), right = DrawIntegers({7, 45, 37}).transpose(1, 2),
                   bias = DrawIntegers({7, 45}), other = DrawIntegers({60, 20});
  const at::Tensor out = NanLike(at::empty({60, 45}, left.options())),
                   of_weight = NanLike(at::empty({7, 37, 20}, left.options())),
                   of_bias = NanLike(at::empty({7, 37}, left.options()));
  MultiplyGroups(left, right, offsets, out, {.bias = bias}, Kernels());
  GroupWeightGradients(left, other, offsets, of_weight, Kernels());
  GroupBiasGradients(left, offsets, of_bias, Kernels());
  EXPECT_TRUE(Double(out).equal(ExactProduct(left, right, bias, offsets, AsItIs)));
  for (std::int64_t g = 0; g < 7; ++g) {
    const at::Tensor a = Double(left.narrow(0, offsets[g], offsets[g + 1] - offsets[g])),
                     b = Double(other.narrow(0, offsets[g], offsets[g + 1] - offsets[g]));
    EXPECT_TRUE(Double(of_weight[g]).equal(at::matmul(a.t(), b))) << g;
    EXPECT_TRUE(Double(of_bias[g]).equal(a.sum(0))) << g;
  }
}

// Work is divided differently for every number of threads; results are bitwise identical.
TEST_P(GroupedTest, ThreadsDoNotMatter) {
  const Offsets offsets = OffsetsOf({900, 0, 3, 1200, 1});
  const at::Tensor left = Draw({2104, 70}), right = Draw({5, 70, 90}), of_out = Draw({2104, 90});
  if (Kernels() == GroupKernels::kLoop || !HasOwnProducts(left))
    return;  // LibTorch's libraries promise no such thing
  ExpectSameOnThreads(3, [&] {
    const at::Tensor out = NanLike(of_out), of_weight = NanLike(right), of_bias = NanLike(Draw({5, 90}));
    MultiplyGroups(left, right, offsets, out, {}, Kernels());
    GroupWeightGradients(left, of_out, offsets, of_weight, Kernels());
    GroupBiasGradients(of_out, offsets, of_bias, Kernels());
    return std::vector<at::Tensor>{out, of_weight, of_bias};
  });
}

INSTANTIATE_TEST_SUITE_P(Types, GroupedTest,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16, at::kDouble),
                                          testing::Values(GroupKernels::kBest, GroupKernels::kLoop)),
                         [](const auto& setting) {
                           return std::string(c10::toString(std::get<0>(setting.param))) +
                                  (std::get<1>(setting.param) == GroupKernels::kBest ? "Best" : "Loop");
                         });

// With kernels of our own a row has the same bits whatever group it is in.
TEST(GroupedBitsTest, RowsDoNotDependOnTheGrouping) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor left = at::randn({150, 1030}).to(type), weight = at::randn({1, 1030, 50}).to(type);
    if (!HasOwnProducts(left)) continue;  // LibTorch's libraries promise no such thing
    const at::Tensor whole = at::empty({150, 50}, left.options()), parts = at::empty_like(whole);
    MultiplyGroups(left, weight, OffsetsOf({150}), whole);
    for (const std::vector<std::int64_t>& counts :
         {std::vector<std::int64_t>{1, 16, 33, 0, 100}, std::vector<std::int64_t>{15, 17, 29, 89}}) {
      const auto groups = static_cast<std::int64_t>(counts.size());
      MultiplyGroups(left, weight.expand({groups, 1030, 50}), OffsetsOf(counts), parts);
      EXPECT_TRUE(parts.equal(whole)) << type;
    }
  }
}

// Each as (rows, inner, columns); the left operand's rows lie apart in the second one.
template <typename T>
std::vector<at::Tensor> MultiplyInRanges(const std::vector<std::int64_t>& cuts, at::ScalarType type) {
  at::manual_seed(4);
  const std::vector<std::vector<std::int64_t>> sizes = {{5, 40, 100}, {64, 9, 33}, {1, 3, 1}, {30, 17, 64}};
  std::vector<at::Tensor> kept, results;
  std::vector<Product<T>> products;
  const auto data = [](const at::Tensor& t) { return static_cast<T*>(t.mutable_data_ptr()); };
  for (const auto& s : sizes) {
    const bool apart = results.size() == 1;
    kept.push_back(at::randn({s[0], s[1]}).to(type));
    kept.push_back(at::randn({s[1], s[2]}).to(type));
    results.push_back(NanLike(at::empty({s[0], s[2]}, kept[0].options())));
    const T *left = data(kept[kept.size() - 2]), *right = data(kept.back());
    products.push_back({.rows = s[0],
                        .columns = s[2],
                        .inner = s[1],
                        .left = {left, apart ? 1 : s[1], apart ? s[0] : 1},
                        .right = {right, s[2], 1},
                        .out = data(results.back()),
                        .out_stride = s[2]});
  }
  const ForRanges in_ranges = [&](std::int64_t count,
                                  const std::function<void(std::int64_t, std::int64_t)>& body) {
    std::int64_t last = count;  // the last range first
    for (const std::int64_t cut : cuts) {
      body(count * cut / 1000, last);
      last = count * cut / 1000;
    }
    body(0, last);
  };
  UsableProducts<T>()->multiply_each(products.data(), static_cast<std::int64_t>(products.size()), in_ranges);
  return results;
}

// However the panels of all products are shared among threads, each is computed once, from its own operands.
TEST(GroupedKernelsTest, RangesMayBeCutAnywhere) {
  const auto compare = [&]<typename T>(T, at::ScalarType type) {
    if (UsableProducts<T>() == nullptr) return;
    const auto whole = MultiplyInRanges<T>({}, type);
    for (std::int64_t cut = 1; cut < 1000; cut += 7) {
      const auto cuts =
          cut > 500 ? std::vector<std::int64_t>{cut, cut - 100, cut - 101, 13} : std::vector{cut};
      const auto parts = MultiplyInRanges<T>(cuts, type);
      for (std::size_t i = 0; i < whole.size(); ++i)
        ASSERT_TRUE(parts[i].equal(whole[i])) << i << ", " << cut;
    }
  };
  compare(float{}, at::kFloat);
  compare(BFloat16{}, at::kBFloat16);
}

TEST(GroupedMetaTest, ShapesAreChecked) {
  const auto meta = [](at::IntArrayRef shape) {
    return at::empty(shape, at::TensorOptions().device(at::kMeta));
  };
  const Offsets offsets = {0, 4, 4, 10};
  MultiplyGroups(meta({10, 6}), meta({3, 6, 5}), offsets, meta({10, 5}));
  GroupWeightGradients(meta({10, 6}), meta({10, 5}), offsets, meta({3, 6, 5}));
  GroupBiasGradients(meta({10, 6}), offsets, meta({3, 6}));
  EXPECT_DEATH(MultiplyGroups(meta({9, 6}), meta({3, 6, 5}), offsets, meta({10, 5})), "expected \\[10, 6\\]");
  EXPECT_DEATH(MultiplyGroups(meta({10, 6}), meta({2, 6, 5}), offsets, meta({10, 5})),
               "expected \\[3, 6, 5\\]");
  EXPECT_DEATH(GroupWeightGradients(meta({10, 6}), meta({10, 4}), offsets, meta({3, 6, 5})),
               "expected \\[10, 5\\]");
  EXPECT_DEATH(GroupBiasGradients(meta({10, 6}), offsets, meta({3, 5})), "expected \\[10, 5\\]");
  EXPECT_DEATH(GroupBiasGradients(meta({10, 6}), {{0, 5, 4, 10}}, meta({3, 6})), "descend");
}

}  // namespace
}  // namespace plait::linear
