// Sums over the tree of leaf_sum.h against the tree's definition, which every rank computes for itself in single
// floats: equal bits for sizes that the ranks divide and sizes that they do not, and leaves in any order.
#include "parallel/sharding/leaf_sum.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "comm/testing/world.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;

// Below, at and above multiples of 2, 4 and 8.
constexpr std::int64_t kCounts[] = {1, 2, 3, 5, 7, 8, 9, 16, 29, 61, 64};

// Of many magnitudes, so that every order of summation gives different bits.
at::Tensor Numbers(std::int64_t count, int of) {
  const at::Tensor numbers = TestNumbers({count}, 17 + of, at::kFloat);
  return numbers.div(numbers.abs() + 1e-3f).mul(TestNumbers({count}, 1000 + of, at::kFloat));
}

// The node over the terms [begin, end) of element i: of its two halves.
float Node(const std::vector<at::Tensor>& terms, std::int64_t i, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return terms[begin].const_data_ptr<float>()[i];
  const std::size_t middle = begin + (end - begin) / 2;
  return Node(terms, i, begin, middle) + Node(terms, i, middle, end);
}

float InOrder(const std::vector<at::Tensor>& terms, std::int64_t i) {
  float sum = 0;
  for (const at::Tensor& term : terms) sum += term.const_data_ptr<float>()[i];
  return sum;
}

std::vector<at::Tensor> TermsOf(int terms, std::int64_t count) {
  std::vector<at::Tensor> all;
  for (int term = 0; term < terms; ++term) all.push_back(Numbers(count, 100 * term));
  return all;
}

// How many elements of `sum` are not those of the tree, beginning at element `first` of the terms.
std::int64_t Wrong(const at::Tensor& sum, const std::vector<at::Tensor>& terms, std::int64_t first = 0) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < sum.numel(); ++i) {
    wrong += sum.const_data_ptr<float>()[i] == Node(terms, first + i, 0, terms.size()) ? 0 : 1;
  }
  return wrong;
}

TEST(AxisSum, AllReduceIsTheTreeForEverySize) {
  const comm::Communicator& world = World();
  const comm::Communicator gather = world.Split(0, world.rank(), "gather");
  for (const std::int64_t count : kCounts) {
    const std::vector<at::Tensor> terms = TermsOf(world.size(), count);
    // Surrounded by other elements, which must not change.
    const at::Tensor whole = at::zeros({count + 2}, at::kFloat).fill_(-5);
    const at::Tensor values = whole.narrow(0, 1, count);
    for (const bool polls : {false, true}) {
      values.copy_(terms[static_cast<std::size_t>(world.rank())]);
      AxisSum sum = AxisSum::AllReduce(world, gather, values, /*over_tree=*/true, /*tag=*/3);
      while (polls && !sum.Test()) continue;
      if (!polls) sum.Wait();
      EXPECT_EQ(Wrong(values, terms), 0) << count << " numbers";
      EXPECT_EQ(whole[0].item<float>(), -5);
      EXPECT_EQ(whole[count + 1].item<float>(), -5);
    }
  }
}

TEST(AxisSum, ReduceScatterIsTheTree) {
  const comm::Communicator& world = World();
  for (const std::int64_t part : {1, 3, 16}) {
    const std::vector<at::Tensor> terms = TermsOf(world.size(), part * world.size());
    const at::Tensor shard = at::empty({part}, at::kFloat);
    AxisSum::ReduceScatter(world, terms[static_cast<std::size_t>(world.rank())], shard, /*over_tree=*/true,
                           /*tag=*/4)
        .Wait();
    EXPECT_EQ(Wrong(shard, terms, world.rank() * part), 0) << part << " numbers of each rank";
  }
}

// Otherwise the tests above would prove nothing.
TEST(AxisSum, OtherOrdersHaveOtherBits) {
  const std::vector<at::Tensor> terms = TermsOf(4, 64);
  std::int64_t same = 0;
  for (std::int64_t i = 0; i < 64; ++i) same += InOrder(terms, i) == Node(terms, i, 0, 4) ? 1 : 0;
  EXPECT_LT(same, 48);
}

TEST(LeafSum, IsTheTreeInAnyOrderOfLeaves) {
  constexpr int kLeaves = 8;
  constexpr std::int64_t kCount = 21;
  const std::vector<at::Tensor> terms = TermsOf(kLeaves, kCount);
  BufferPool pool;
  for (const std::vector<int>& order : std::vector<std::vector<int>>{
           {0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3, 0, 6, 1, 7, 4, 2, 5}}) {
    LeafSum sum;
    for (const int leaf : order) {
      FlatBuffer gradient(&pool, kCount, at::TensorOptions(at::kFloat));
      gradient.Allocate();
      gradient.tensor().copy_(terms[static_cast<std::size_t>(leaf)]);
      sum.Add(leaf, std::move(gradient));
    }
    EXPECT_EQ(Wrong(sum.Take().tensor(), terms), 0);
    EXPECT_TRUE(sum.empty());
  }
}

}  // namespace
}  // namespace plait::parallel
