#include "parallel/moe/select_experts.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/testing/same_on_threads.h"

namespace plait::moe {
namespace {

// The first k of a stable sort from large to small.
at::Tensor BySorting(const at::Tensor& values, int k) {
  at::Tensor selected = at::zeros({values.size(0), k}, at::kLong);
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    const at::Tensor row = values[i].to(at::kDouble).contiguous();
    const double* value = row.const_data_ptr<double>();
    std::vector<std::int64_t> order(values.size(1));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return value[a] > value[b]; });
    for (int j = 0; j < k; ++j) selected[i][j] = order[j];
  }
  return selected;
}

TEST(SelectExperts, AreTheFirstOfAStableSort) {
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
  for (const int experts : {1, 2, 5, 64, 256}) {
    for (const int k : {1, 2, 3, 8, experts}) {
      if (k > experts) continue;
      const at::Tensor distinct = at::randn({40, experts}, generator, at::kFloat);
      const at::Tensor with_ties = at::randint(-2, 3, {40, experts}, generator, at::kFloat);
      for (const at::Tensor& values :
           {distinct, with_ties, at::Tensor(with_ties.to(at::kDouble).t().contiguous().t()),
            at::Tensor(with_ties * 0)}) {
        const at::Tensor expected = BySorting(values, k);
        EXPECT_TRUE(SelectExperts(values, k).equal(expected)) << experts << " experts, k " << k;
        EXPECT_TRUE(internal::SelectByOperators(values, k).equal(expected)) << experts << " experts, k " << k;
      }
    }
  }
}

TEST(SelectExperts, RowsThatAreNotFiniteAreFound) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    at::Tensor values = at::zeros({5, 9}, type);
    for (const auto find : {FindNotFinite, internal::FindByOperators}) {
      EXPECT_EQ(find(values.narrow(0, 0, 1)).rows, 0);
      EXPECT_FALSE(find(values.narrow(0, 0, 1)).mark.defined());
    }
    values[0][8] = std::nan("");
    values[2][0] = infinity;
    values[4][4] = -infinity;
    values[3][3] = type == at::kFloat ? static_cast<double>(std::numeric_limits<float>::max()) : 1e308;
    for (const auto find : {FindNotFinite, internal::FindByOperators}) {
      const NotFinite found = find(values);
      EXPECT_EQ(found.rows, 3);
      for (const int row : {0, 1, 2, 3, 4}) {
        const auto mark = found.mark[row][0].item<double>();
        EXPECT_TRUE(row % 2 == 0 ? std::isnan(mark) : mark == 1) << row;
      }
      const at::Tensor marked = values * found.mark;
      EXPECT_TRUE(SelectExperts(marked, 2).lt(0).any(1).equal(found.mark.select(1, 0).isnan()));
      EXPECT_TRUE(internal::SelectByOperators(marked, 2).equal(SelectExperts(marked, 2)));
    }
  }
}

TEST(SelectExperts, ThreadsDoNotMatter) {
  const at::Tensor values = at::randn({2000, 64}, at::detail::createCPUGenerator(/*seed_val=*/2), at::kFloat);
  ExpectSameOnThreads(1, [&] { return std::vector<at::Tensor>{SelectExperts(values, 3)}; });
}

}  // namespace
}  // namespace plait::moe
