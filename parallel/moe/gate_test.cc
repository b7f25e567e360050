#include "parallel/moe/gate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace plait::moe {
namespace {

TEST(Gate, TiesGoToLowerExperts) {
  const at::Tensor logits = at::tensor({1.0, 2.0, 2.0, 1.0, 3.0, 3.0, 3.0, 3.0}, at::kDouble).view({2, 4});
  const Routing routing = Route({.experts = 4, .k = 3}, logits, {});
  EXPECT_TRUE(routing.experts.equal(at::tensor({1, 2, 0, 0, 1, 2}, at::kLong).view({2, 3})))
      << routing.experts;
}

TEST(Gate, WeightsAreTheSoftmaxOverTheChosen) {
  const at::Tensor logits = at::randn({20, 8}, at::kDouble);
  const Routing routing = Route({.experts = 8, .k = 3}, logits, {});
  const at::Tensor chosen = logits.gather(1, routing.experts).exp();
  EXPECT_TRUE(routing.weights.allclose(chosen / chosen.sum(1, true), 1e-14, 0));
}

}  // namespace
}  // namespace plait::moe
