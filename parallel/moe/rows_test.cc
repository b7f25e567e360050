// Copies and sums of rows against loops in float64, for every type and for widths that no vector divides.
#include "parallel/moe/rows.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/testing/same_on_threads.h"

namespace plait::moe {
namespace {

constexpr std::int64_t kRows = 23, kPlaces = 61;
constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

class Numbers {
 public:
  at::Tensor Normal(at::IntArrayRef shape, at::ScalarType type) {
    return at::empty(shape, at::kDouble).normal_(0, 1, generator_).to(type);
  }
  // Some rows come often, some never.
  RowNumbers Index() {
    const at::Tensor drawn = at::randint(0, kRows - 5, {kPlaces}, generator_, at::kLong);
    const auto* const data = drawn.const_data_ptr<std::int64_t>();
    return RowNumbers(data, data + kPlaces);
  }

 private:
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(3);
};

double Roundoff(at::ScalarType type) {
  if (type == at::kDouble) return std::numeric_limits<double>::epsilon();
  return type == at::kFloat ? 1.2e-7 : type == at::kBFloat16 ? 1.0 / 256 : 1.0 / 2048;
}

void ExpectNear(const at::Tensor& expected, const at::Tensor& actual, double tolerance) {
  ASSERT_EQ(expected.sizes(), actual.sizes());
  if (expected.numel() == 0) return;
  EXPECT_LE((expected - actual.to(at::kDouble)).abs().max().item<double>(), tolerance);
}

// Fills memory that the next allocations will reuse.
void PoisonFreedMemory(std::int64_t numbers) {
  at::empty({numbers}, at::kDouble).fill_(std::numeric_limits<double>::quiet_NaN());
}

TEST(Rows, AreSumsOfLoops) {
  Numbers numbers;
  for (const at::ScalarType type : kTypes) {
    for (const std::int64_t width : {1, 7, 16, 33, 64, 70, 256}) {
      for (const at::ScalarType scale_type : {at::kFloat, at::kDouble}) {
        SCOPED_TRACE(testing::Message() << toString(type) << " " << width);
        const RowNumbers index = numbers.Index();
        const at::Tensor rows = numbers.Normal({kPlaces, width}, type),
                         x = numbers.Normal({kRows, width}, type);
        const at::Tensor scale = numbers.Normal({kPlaces}, scale_type);
        at::Tensor sum = at::zeros({kRows, width}, at::kDouble), scaled = at::zeros_like(sum);
        at::Tensor of_rows = at::zeros({kPlaces, width}, at::kDouble),
                   of_scale = at::zeros({kPlaces}, at::kDouble);
        for (std::int64_t i = 0; i < kPlaces; ++i) {
          const at::Tensor row = rows[i].to(at::kDouble), weight = scale[i].to(at::kDouble);
          sum[index[i]].add_(row);
          scaled[index[i]].add_(row * weight);
          of_rows[i].copy_(x[index[i]].to(at::kDouble) * weight);
          of_scale[i].copy_((x[index[i]].to(at::kDouble) * row).sum());
        }
        // At most 12 addends of magnitude 4, in float32 or wider, rounded once; products of `width` numbers.
        const double tolerance = 16 * Roundoff(type) + 1e-5 * (type == at::kDouble ? 1e-8 : 1);
        PoisonFreedMemory(kRows * width);
        ExpectNear(sum, SumRows(rows, index, kRows), tolerance);
        ExpectNear(scaled, SumRows(rows, index, kRows, scale), 2 * tolerance);
        const ScaledRowGradients of = SumRowsBackward(x, index, rows, scale);
        ExpectNear(of_rows, of.rows, tolerance);
        ExpectNear(
            of_scale, of.scale,
            static_cast<double>(width) * (scale_type == at::kFloat || type != at::kDouble ? 2e-6 : 1e-14));
        EXPECT_EQ(of.scale.scalar_type(), scale_type);
        EXPECT_TRUE(GatherRows(x, index).equal(x.index_select(0, at::tensor(index))));
      }
    }
  }
}

TEST(Rows, NoneAreLegal) {
  const at::Tensor none = at::empty({0, 4}), x = at::zeros({3, 4});
  EXPECT_EQ(GatherRows(x, {}).sizes(), at::IntArrayRef({0, 4}));
  EXPECT_TRUE(SumRows(none, {}, 3).equal(x));
  EXPECT_EQ(SumRows(none, {}, 0).sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(SumRowsBackward(x, {}, none, at::empty({0})).rows.sizes(), at::IntArrayRef({0, 4}));
}

TEST(Rows, OnTheMetaDeviceHaveShapes) {
  const at::Tensor x = at::empty({3, 4}, at::TensorOptions(at::kMeta).dtype(at::kBFloat16));
  EXPECT_EQ(GatherRows(x, {0, 2, 2, 1}).sizes(), at::IntArrayRef({4, 4}));
  EXPECT_EQ(SumRows(x, {1, 1, 0}, 2).sizes(), at::IntArrayRef({2, 4}));
}

TEST(Rows, ThreadsDoNotMatter) {
  constexpr std::int64_t kMany = 3000, kWidth = 70;
  Numbers numbers;
  RowNumbers index;
  for (std::int64_t i = 0; i < kMany; ++i) index.push_back(i * i % (kMany - 7));
  for (const at::ScalarType type : kTypes) {
    const at::Tensor rows = numbers.Normal({kMany, kWidth}, type),
                     scale = numbers.Normal({kMany}, at::kFloat);
    ExpectSameOnThreads(4, [&] {
      const ScaledRowGradients of = SumRowsBackward(rows, index, rows, scale);
      return std::vector<at::Tensor>{GatherRows(rows, index), SumRows(rows, index, kMany),
                                     SumRows(rows, index, kMany, scale), of.rows, of.scale};
    });
  }
}

}  // namespace
}  // namespace plait::moe
