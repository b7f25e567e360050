// Split layers against whole ones, at::linear in float64 on one rank.
#include "parallel/tensor/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "comm/testing/world.h"
#include "parallel/tensor/collectives.h"
#include "parallel/tensor/testing/numbers.h"

namespace plait::tensor_parallel {
namespace {

using comm::testing::World;
using testing::Random;

constexpr std::int64_t kIn = 5, kWide = 7, kOut = 6;  // wide layers are split unequally

struct Weights {
  at::Tensor gate, gate_bias, up, down, down_bias;
  std::vector<at::Tensor> all() const { return {gate, gate_bias, up, down, down_bias}; }
};

Weights Whole() {
  return {Random({kWide, kIn}, 2), Random({kWide}, 3), Random({kWide, kIn}, 4), Random({kOut, kWide}, 5),
          Random({kOut}, 6)};
}

at::Tensor Leaf(const at::Tensor& x) { return x.detach().clone().requires_grad_(true); }

// |a - b| of sums of at most `n` products of magnitude 1 in another order.
void ExpectNear(const at::Tensor& a, const at::Tensor& b, const char* what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LE((a - b).abs().max().item<double>(), 1e-12 * (1 + b.abs().max().item<double>())) << what;
}

class SplitLinear : public ::testing::TestWithParam<bool> {};

TEST_P(SplitLinear, IsTheWholeLayer) {
  const TensorAxis axis(World(), {.sequence_parallel = GetParam()});
  const std::int64_t rows = 4 * axis.size();
  Weights whole = Whole();
  for (at::Tensor* weight : {&whole.gate, &whole.gate_bias, &whole.up, &whole.down, &whole.down_bias})
    *weight = Leaf(*weight);
  const at::Tensor x = Leaf(Random({rows, kIn}, 1)), r = Leaf(Random({rows, kOut}, 8)),
                   g = Random({rows, kOut}, 9);
  const at::Tensor hidden = at::gelu(at::linear(x, whole.gate, whole.gate_bias)) * at::linear(x, whole.up);
  const at::Tensor y = at::linear(hidden, whole.down, whole.down_bias) + r;
  y.backward(g);

  const Range wide = axis.PartOf(kWide);
  const auto columns = [&](const at::Tensor& w) { return Leaf(w.narrow(0, wide.begin, wide.size())); };
  const Weights part = {columns(whole.gate), columns(whole.gate_bias), columns(whole.up),
                        Leaf(whole.down.narrow(1, wide.begin, wide.size())), Leaf(whole.down_bias)};
  const at::Tensor my_x = Leaf(x), my_r = Leaf(r);
  const auto of_rows = [&](const at::Tensor& t) {
    return axis.sequence_parallel() ? t.narrow(0, axis.PartOf(rows).begin, axis.PartOf(rows).size()) : t;
  };
  const Residual input(of_rows(my_x)), residual(of_rows(my_r));
  const auto products = ColumnLinear(axis, input, {{part.gate, part.gate_bias}, {part.up}});
  const Shard<1> product =
      Map(products[0], products[1], [](const at::Tensor& a, const at::Tensor& b) { return at::gelu(a) * b; });
  const Residual mine = AddRowLinear(axis, residual, product, {part.down, part.down_bias});
  ExpectNear(mine.local(), of_rows(y), "output");
  ExpectNear(Add(residual, RowLinear(axis, product, {part.down, part.down_bias})).local(), of_rows(y),
             "RowLinear");
  mine.local().backward(of_rows(g));

  ExpectNear(part.gate.grad(), whole.gate.grad().narrow(0, wide.begin, wide.size()), "gate");
  ExpectNear(part.gate_bias.grad(), whole.gate_bias.grad().narrow(0, wide.begin, wide.size()), "gate's bias");
  ExpectNear(part.up.grad(), whole.up.grad().narrow(0, wide.begin, wide.size()), "up");
  ExpectNear(part.down.grad(), whole.down.grad().narrow(1, wide.begin, wide.size()), "down");
  // Under sequence parallelism these gradients are of this rank's rows; the engine sums them.
  const bool sums = axis.sequence_parallel();
  ExpectNear(sums ? testing::AllReduced(part.down_bias.grad()) : part.down_bias.grad(),
             whole.down_bias.grad(), "down's bias");
  ExpectNear(sums ? testing::AllReduced(my_x.grad()) : my_x.grad(), x.grad(), "x");
  ExpectNear(sums ? testing::AllReduced(my_r.grad()) : my_r.grad(), r.grad(), "residual");
}

INSTANTIATE_TEST_SUITE_P(, SplitLinear, ::testing::Values(false, true));

// A layer whose output is unused has no gradient, and the others do not wait for it.
TEST(ColumnLinear, UnusedOutput) {
  const TensorAxis axis(World(), {});
  const at::Tensor x = Leaf(Random({3, kIn}, 1)), a = Leaf(Random({2, kIn}, 2 + axis.rank())),
                   b = Leaf(Random({2, kIn}, 3));
  ColumnLinear(axis, Residual(x), {{a}, {b}})[0].local().sum().backward();
  EXPECT_FALSE(b.grad().defined());
  ExpectNear(x.grad(), testing::AllReduced(a.detach()).sum(0).expand({3, kIn}), "x");
}

TEST(Linear, GradientsAreNotDifferentiatedAgain) {
  const TensorAxis axis(World(), {});
  if (!axis.split()) return;  // LibTorch's linear layer, which may be
  const at::Tensor x = Leaf(Random({3, kIn}, 1)), weight = Leaf(Random({2, kIn}, 2));
  const at::Tensor column = ColumnLinear(axis, Residual(x), {{weight}})[0].local(),
                   row = RowLinear(axis, Shard<1>(x), {weight}).local();
  for (const at::Tensor& y : {column, row}) {
    EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, {}, /*create_graph=*/true), c10::Error);
  }
}

// The gradient of x needs one reduction, those of the weights none: a backward in two parts has one in total.
TEST(ColumnLinear, ReducesOnceInABackwardOfTwoParts) {
  const TensorAxis axis(World(), {});
  if (!axis.split()) return;
  const at::Tensor x = Leaf(Random({3, kIn}, 1)), a = Leaf(Random({2, kIn}, 2)), b = Leaf(Random({4, 2}, 3));
  const at::Tensor y = RowLinear(axis, ColumnLinear(axis, Residual(x), {{a}})[0], {b}).local();
  const auto reductions = [&] {
    std::int64_t calls = 0;
    for (const auto& [name, operations] : World().stats()) {
      calls += operations[static_cast<std::size_t>(comm::Operation::kAllReduce)].calls;
    }
    return calls;
  };
  const std::int64_t before = reductions();
  const at::Tensor g = Random({3, 4}, 4);
  const auto of_x = torch::autograd::grad({y}, {x}, {g}, /*retain_graph=*/true);
  EXPECT_EQ(reductions(), before + 1);
  const auto of_weights = torch::autograd::grad({y}, {a, b}, {g});
  EXPECT_EQ(reductions(), before + 1);
  x.mutable_grad() = at::Tensor();
  const at::Tensor again = RowLinear(axis, ColumnLinear(axis, Residual(x), {{a}})[0], {b}).local();
  again.backward(g);
  EXPECT_TRUE(of_x[0].equal(x.grad()));
  EXPECT_TRUE(of_weights[0].equal(a.grad()));
  EXPECT_TRUE(of_weights[1].equal(b.grad()));
}

}  // namespace
}  // namespace plait::tensor_parallel
