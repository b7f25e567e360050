#include "models/block_runner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <vector>

namespace plait::models {
namespace {

TEST(Materialize, GivesAMetaTensorMemoryAndKeepsItALeaf) {
  const at::Tensor parameter = at::empty({2, 3}, at::TensorOptions(at::kMeta)).requires_grad_(true);
  const at::Tensor handle = parameter;
  const at::Tensor data = at::arange(6, at::kDouble).view({2, 3});
  Materialize(parameter, data);
  EXPECT_TRUE(handle.is_leaf() && handle.requires_grad());
  EXPECT_EQ(handle.device(), at::kCPU);
  EXPECT_EQ(handle.scalar_type(), at::kDouble);
  EXPECT_EQ(handle.data_ptr(), data.data_ptr());
  (handle * handle).sum().backward();
  EXPECT_TRUE(parameter.grad().equal(2 * data));
}

TEST(Materialize, TakesTheMemoryAway) {
  const at::Tensor parameter = at::ones({4}).requires_grad_(true);
  Materialize(parameter, at::empty({4}, at::TensorOptions(at::kMeta)));
  EXPECT_TRUE(parameter.is_meta());
  Materialize(parameter, at::ones({4}) * 3);
  EXPECT_EQ(parameter.sum().item<float>(), 12);
}

TEST(MaterializeDeathTest, RefusesAnotherShape) {
  const at::Tensor parameter = at::empty({2, 3}, at::TensorOptions(at::kMeta));
  EXPECT_DEATH(Materialize(parameter, at::ones({3, 2})), "\\[3, 2\\] for a parameter of shape \\[2, 3\\]");
}

TEST(RunBlock, GoesThroughTheRunnerWhereThereIsOne) {
  const BlockForward twice = [](const at::Tensor& x) { return 2 * x; };
  EXPECT_EQ(RunBlock(nullptr, 0, twice, at::ones({})).item<float>(), 2);
  std::vector<std::size_t> seen;
  const BlockRunner again = [&](std::size_t block, const BlockForward& forward, const at::Tensor& input) {
    seen.push_back(block);
    return forward(forward(input));
  };
  EXPECT_EQ(RunBlock(again, 7, twice, at::ones({})).item<float>(), 4);
  EXPECT_EQ(seen, std::vector<std::size_t>{7});
}

}  // namespace
}  // namespace plait::models
