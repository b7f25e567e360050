// Every collective against its definition on whole tensors, and its backward against the transpose: with the
// products of values and gradients that their types define, <A x, g> = <x, A^T g>.
#include "parallel/tensor/collectives.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "parallel/tensor/testing/numbers.h"

namespace plait::tensor_parallel {
namespace {

using comm::testing::World;
using testing::Random;
using testing::SumOverRanks;

const TensorAxis& Axis() {
  static const TensorAxis axis(World(), {});
  return axis;
}

enum class Kind { kInvariant, kReplicate, kShard, kPartial };

// Value and gradient of one type, random as the type says; `g` for a shard is of the slice.
struct Pair {
  at::Tensor x, g;
};
Pair RandomPair(Kind kind, at::IntArrayRef shape, int seed) {
  const int rank = Axis().rank();
  switch (kind) {
    case Kind::kInvariant:
      return {Random(shape, seed), Random(shape, seed + 1)};
    case Kind::kReplicate:
      return {Random(shape, seed), Random(shape, seed + 10 + rank)};
    case Kind::kShard:
      return {Random(shape, seed + 30 + rank), Random(shape, seed + 60 + rank)};
    case Kind::kPartial:
      return {Random(shape, seed + 90 + rank), Random(shape, seed + 1)};
  }
  return {};
}

// <value, gradient> of the whole: terms that are the same on all ranks count once.
double Product(Kind kind, const at::Tensor& x, const at::Tensor& g) {
  const double mine = (x * g).sum().item<double>();
  return kind == Kind::kInvariant ? mine : SumOverRanks(mine);
}

void ExpectTranspose(Kind in, Kind out, at::IntArrayRef in_shape,
                     const std::function<at::Tensor(const at::Tensor&)>& collective) {
  Pair input = RandomPair(in, in_shape, 1);
  at::Tensor x = input.x.clone().requires_grad_(true);
  const at::Tensor y = collective(x);
  const at::Tensor g = RandomPair(out, y.sizes(), 500).g;
  y.backward(g);
  const double forward = Product(out, y.detach(), g), backward = Product(in, input.x, x.grad());
  // Sums of `n` products of magnitude 1, in another order.
  const double n = static_cast<double>(x.numel() + y.numel()) * Axis().size();
  EXPECT_NEAR(forward, backward, 4 * n * 2.3e-16 * std::sqrt(n));
  if (in == Kind::kInvariant || in == Kind::kPartial) {
    const at::Tensor mean = testing::AllReduced(x.grad()) / Axis().size();
    EXPECT_LE((x.grad() - mean).abs().max().item<double>(), 1e-14) << "the gradient differs between ranks";
  }
}

at::Tensor Whole(const at::Tensor& part, int dimension) { return at::cat(testing::OfRanks(part), dimension); }

TEST(Collectives, ToReplicate) {
  const at::Tensor x = Random({3, 4}, 1);
  EXPECT_TRUE(ToReplicate(Axis(), Invariant(x)).local().equal(x));
  ExpectTranspose(Kind::kInvariant, Kind::kReplicate, {3, 4},
                  [](const at::Tensor& t) { return ToReplicate(Axis(), Invariant(t)).local(); });
}

TEST(Collectives, AllReduce) {
  const at::Tensor x = Random({3, 4}, 1 + Axis().rank()), before = x.clone();
  const at::Tensor sum = AllReduce(Axis(), Partial(x)).local();
  EXPECT_LE((sum - testing::AllReduced(x)).abs().max().item<double>(), 1e-14);
  EXPECT_TRUE(x.equal(before)) << "the input was changed";
  ExpectTranspose(Kind::kPartial, Kind::kInvariant, {3, 4},
                  [](const at::Tensor& t) { return AllReduce(Axis(), Partial(t)).local(); });
}

// It would lack what the collective adds.
TEST(Collectives, GradientsAreNotDifferentiatedAgain) {
  if (World().size() == 1) return;
  const at::Tensor x = Random({3, 4}, 1).requires_grad_(true);
  const at::Tensor y = AllReduce(Axis(), Partial(x * x)).local();
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, {}, /*create_graph=*/true), c10::Error);
}

TEST(Collectives, AllGatherAlongBothDimensions) {
  const at::Tensor x = Random({3, 4}, 1 + Axis().rank());
  EXPECT_TRUE(AllGather(Axis(), Shard<0>(x)).local().equal(Whole(x, 0)));
  EXPECT_TRUE(AllGather(Axis(), Shard<1>(x)).local().equal(Whole(x, 1)));
  ExpectTranspose(Kind::kShard, Kind::kReplicate, {3, 4},
                  [](const at::Tensor& t) { return AllGather(Axis(), Shard<0>(t)).local(); });
  ExpectTranspose(Kind::kShard, Kind::kReplicate, {3, 4},
                  [](const at::Tensor& t) { return AllGather(Axis(), Shard<1>(t)).local(); });
}

TEST(Collectives, ReduceScatter) {
  const std::int64_t n = Axis().size(), r = Axis().rank();
  const at::Tensor x = Random({2 * n, 3 * n}, 1 + Axis().rank()), sum = testing::AllReduced(x);
  EXPECT_LE(
      (ReduceScatter<0>(Axis(), Partial(x)).local() - sum.narrow(0, 2 * r, 2)).abs().max().item<double>(),
      1e-14);
  EXPECT_LE(
      (ReduceScatter<1>(Axis(), Partial(x)).local() - sum.narrow(1, 3 * r, 3)).abs().max().item<double>(),
      1e-14);
  ExpectTranspose(Kind::kPartial, Kind::kShard, {2 * n, 3 * n},
                  [](const at::Tensor& t) { return ReduceScatter<0>(Axis(), Partial(t)).local(); });
  ExpectTranspose(Kind::kPartial, Kind::kShard, {2 * n, 3 * n},
                  [](const at::Tensor& t) { return ReduceScatter<1>(Axis(), Partial(t)).local(); });
}

// 7 rows or columns: parts of 1 to 7.
TEST(Collectives, SliceAndUnsliceOfUnequalParts) {
  const at::Tensor x = Random({7, 7}, 1);
  const Range part = Axis().PartOf(7);
  EXPECT_TRUE(Slice<0>(Axis(), Invariant(x)).local().equal(x.narrow(0, part.begin, part.size())));
  EXPECT_TRUE(Unslice(Axis(), Slice<1>(Axis(), Invariant(x)), 7).local().equal(x));
  ExpectTranspose(Kind::kInvariant, Kind::kShard, {7, 5},
                  [](const at::Tensor& t) { return Slice<0>(Axis(), Invariant(t)).local(); });
  ExpectTranspose(Kind::kShard, Kind::kInvariant, {5, part.size()},
                  [](const at::Tensor& t) { return Unslice(Axis(), Shard<1>(t), 7).local(); });
}

TEST(Collectives, ResidualIsSplitByRowsUnderSequenceParallelism) {
  const TensorAxis sequence(World(), {.sequence_parallel = true});
  const std::int64_t n = sequence.size();
  const at::Tensor x = Random({2 * n, 3}, 1);
  const Residual rows = ToResidual(sequence, Invariant(x));
  EXPECT_TRUE(rows.local().equal(x.narrow(0, 2 * sequence.rank(), 2)));
  EXPECT_TRUE(FromResidual(sequence, rows).local().equal(x));
  const at::Tensor part = Random({2 * n, 3}, 5 + sequence.rank());
  EXPECT_LE((ToResidual(sequence, Partial(part)).local() -
             testing::AllReduced(part).narrow(0, 2 * sequence.rank(), 2))
                .abs()
                .max()
                .item<double>(),
            1e-14);
}

}  // namespace
}  // namespace plait::tensor_parallel
