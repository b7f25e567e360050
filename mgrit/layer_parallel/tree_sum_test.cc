// The distributed sum against the same tree, added recursively in one process.
#include "mgrit/layer_parallel/tree_sum.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <vector>

#include "comm/testing/world.h"

namespace plait::mgrit {
namespace {

float TermOf(std::int64_t leaf, std::int64_t element) {
  return 1.0f / static_cast<float>(1 + (leaf * 37 + element * 11) % 101);
}

float Expected(std::int64_t first, std::int64_t width, std::int64_t leaves, std::int64_t element) {
  if (width == 1) return TermOf(first, element);
  const float left = Expected(first, width / 2, leaves, element);
  if (first + width / 2 >= leaves) return left;
  return left + Expected(first + width / 2, width / 2, leaves, element);
}

// Float sums depend on their order, so equal bits show that the tree is the same on any number of ranks.
TEST(TreeSum, HasTheBitsOfOneTreeOnAnyNumberOfRanks) {
  const comm::Communicator world = comm::testing::World();
  for (const std::int64_t leaves : {1, 2, 5, 8, 32, 33}) {
    std::vector<std::int64_t> bounds;
    std::vector<int> owners;
    for (int p = 0; p <= world.size(); ++p) bounds.push_back(leaves * p / world.size());
    for (int p = 0; p < world.size(); ++p) owners.push_back(world.size() - 1 - p);
    TreeSum tree(bounds, owners, world);
    at::Tensor sum = at::full({7}, 99.0f);
    std::vector<std::int64_t> asked;
    tree.Compute(
        [&](std::int64_t leaf, at::Tensor& out) {
          asked.push_back(leaf);
          for (std::int64_t e = 0; e < 7; ++e) out[e] = TermOf(leaf, e);
        },
        sum);
    std::int64_t width = 1;
    while (width < leaves) width *= 2;
    for (std::int64_t e = 0; e < 7; ++e) EXPECT_EQ(sum[e].item<float>(), Expected(0, width, leaves, e));
    const int position = world.size() - 1 - world.rank();
    ASSERT_EQ(static_cast<std::int64_t>(asked.size()), bounds[position + 1] - bounds[position]);
    for (std::size_t i = 0; i < asked.size(); ++i)
      EXPECT_EQ(asked[i], bounds[position] + static_cast<std::int64_t>(i));
  }
}

}  // namespace
}  // namespace plait::mgrit
