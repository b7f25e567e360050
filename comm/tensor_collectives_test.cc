#include "comm/tensor_collectives.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

// (rows, 3), different for every rank and element; small integers are exact in every type.
at::Tensor Input(int rank, std::int64_t rows, at::ScalarType type = at::kFloat) {
  return (at::arange(rows * 3).reshape({rows, 3}) + 10 * rank).to(type);
}

// A tensor of the given values whose elements do not lie side by side.
at::Tensor Strided(const at::Tensor& values) {
  at::Tensor wide = at::full({values.size(0), 2 * values.size(1)}, -1, values.options());
  at::Tensor view = wide.slice(1, 0, wide.size(1), 2);
  view.copy_(values);
  EXPECT_EQ(view.is_contiguous(), values.numel() == 0);
  return view;
}

at::Tensor SumOfInputs(std::int64_t rows, at::ScalarType type = at::kFloat) {
  at::Tensor sum = at::zeros({rows, 3}, at::kDouble);
  for (int rank = 0; rank < World().size(); ++rank) sum += Input(rank, rows, at::kDouble);
  return sum.to(type);
}

TEST(TensorCollectives, AllReduceOfEveryType) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt}) {
    at::Tensor values = Input(World().rank(), 4, type);
    AllReduce(World(), values);
    EXPECT_TRUE(values.equal(SumOfInputs(4, type))) << type;
  }
}

TEST(TensorCollectives, StridedTensorsAreCopiedAndCopiedBack) {
  at::Tensor values = Strided(Input(World().rank(), 4));
  const void* memory = values.data_ptr();
  AllReduce(World(), values);
  EXPECT_TRUE(values.equal(SumOfInputs(4)));
  EXPECT_EQ(values.data_ptr(), memory);
  // What lies between the elements is untouched.
  EXPECT_TRUE(values.as_strided({4, 3}, {6, 2}, 1).equal(at::full({4, 3}, -1.0)));

  at::Tensor again = Strided(Input(World().rank(), 4));
  TensorWork work = AllReduceAsync(World(), again);
  while (!work.Test()) {
  }
  EXPECT_TRUE(again.equal(SumOfInputs(4)));
}

TEST(TensorCollectives, Broadcast) {
  const int root = World().size() - 1;
  for (const bool strided : {false, true}) {
    at::Tensor values = Input(World().rank(), 2);
    if (strided) values = Strided(values);
    Broadcast(World(), values, root);
    EXPECT_TRUE(values.equal(Input(root, 2)));
  }
}

TEST(TensorCollectives, AllGatherThenReduceScatter) {
  const int size = World().size(), rank = World().rank();
  std::vector<at::Tensor> parts;
  for (int r = 0; r < size; ++r) parts.push_back(Input(r, 2));
  const at::Tensor whole = AllGather(World(), Strided(Input(rank, 2)));
  EXPECT_TRUE(whole.equal(at::cat(parts)));

  at::Tensor part = Strided(at::zeros({2, 3}));
  ReduceScatter(World(), whole * (rank + 1), part);
  EXPECT_TRUE(part.equal(parts[rank] * (size * (size + 1) / 2)));

  at::Tensor later = at::zeros({2, 3});
  ReduceScatterAsync(World(), whole.clone(), later, ReduceOp::kAverage).Wait();
  EXPECT_TRUE(later.equal(parts[rank]));
}

TEST(TensorCollectives, AllGatherInPlace) {
  at::Tensor whole = at::zeros({2 * World().size(), 3});
  const at::Tensor part = whole.slice(0, 2 * World().rank(), 2 * World().rank() + 2);
  part.copy_(Input(World().rank(), 2));
  AllGather(World(), part, whole);
  for (int r = 0; r < World().size(); ++r) EXPECT_TRUE(whole.slice(0, 2 * r, 2 * r + 2).equal(Input(r, 2)));
}

TEST(TensorCollectives, AllToAllTransposesBlocks) {
  const int size = World().size(), rank = World().rank();
  // Row p of rank r holds 8 r + p.
  const at::Tensor in = (at::arange(size) + 8 * rank).reshape({size, 1});
  at::Tensor out = at::empty_like(in);
  AllToAll(World(), in, out);
  EXPECT_TRUE(out.equal((at::arange(size) * 8 + rank).reshape({size, 1})));
}

TEST(TensorCollectives, AllToAllVCountsRows) {
  const int size = World().size(), rank = World().rank();
  // Rank r sends p rows of r to rank p.
  std::vector<std::int64_t> send_rows(size), receive_rows(size, rank);
  for (int p = 0; p < size; ++p) send_rows[p] = p;
  const at::Tensor in = at::full({size * (size - 1) / 2, 3}, rank);
  at::Tensor out = Strided(at::zeros({static_cast<std::int64_t>(rank) * size, 3}, in.options()));
  AllToAllVAsync(World(), in, send_rows, out, receive_rows).Wait();
  for (int p = 0; p < size; ++p) {
    EXPECT_TRUE(out.slice(0, p * rank, (p + 1) * rank).equal(at::full({rank, 3}, p, in.options())));
  }
}

TEST(TensorCollectives, SendAndReceive) {
  const int size = World().size(), rank = World().rank();
  TensorWork send = SendAsync(World(), Strided(Input(rank, 5)), (rank + 1) % size, 3);
  at::Tensor got = Strided(at::zeros({5, 3}));
  Receive(World(), got, (rank + size - 1) % size, 3);
  send.Wait();
  EXPECT_TRUE(got.equal(Input((rank + size - 1) % size, 5)));
}

TEST(TensorCollectives, EmptyTensors) {
  at::Tensor values = at::zeros({0, 3});
  AllReduce(World(), values);
  EXPECT_EQ(AllGather(World(), values).size(0), 0);
}

}  // namespace
}  // namespace plait::comm
