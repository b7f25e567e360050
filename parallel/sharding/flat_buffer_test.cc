// Memory that is released and allocated again under views that autograd has saved.
#include "parallel/sharding/flat_buffer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace plait::parallel {
namespace {

TEST(FlatBufferTest, SavedViewsSeeTheMemoryThatIsThereInBackward) {
  BufferPool pool;
  FlatBuffer buffer(&pool, 4, at::kDouble);
  EXPECT_FALSE(buffer.allocated());
  EXPECT_EQ(pool.bytes(), 0);
  at::Tensor parameter = at::ones({2, 2}, at::kDouble).requires_grad_(true);
  parameter.set_data(buffer.tensor().view({2, 2}));
  buffer.Allocate();
  buffer.tensor().fill_(3);
  const at::Tensor x = at::ones({1, 2}, at::kDouble).requires_grad_(true);
  const at::Tensor y = at::mm(x, parameter).sum();
  EXPECT_EQ(y.item<double>(), 12);

  buffer.Release();
  EXPECT_EQ(parameter.storage().nbytes(), 0u);
  FlatBuffer other(&pool, 4, at::kDouble);
  other.Allocate();  // reuses the released memory, and overwrites it
  other.tensor().fill_(-100);
  EXPECT_EQ(pool.bytes(), 32);
  buffer.Allocate();
  buffer.tensor().fill_(5);  // what backward is to use
  y.backward();
  EXPECT_EQ(x.grad().sum().item<double>(), 20);
  EXPECT_EQ(pool.peak_bytes(), 64);
}

TEST(FlatBufferTest, AdoptedMemoryIsNotCopiedAndGoesWithRelease) {
  BufferPool pool;
  FlatBuffer buffer(&pool, 6, at::kDouble);
  const at::Tensor view = buffer.tensor().view({2, 3});
  at::Tensor values = at::ones({2, 3}, at::kDouble);
  const void* const data = values.const_data_ptr();
  buffer.Adopt(std::move(values));
  EXPECT_TRUE(buffer.adopted());
  EXPECT_EQ(view.const_data_ptr(), data);
  EXPECT_EQ(view.sum().item<double>(), 6);
  EXPECT_EQ(pool.bytes(), 48);
  buffer.Adopt(at::ones({6}, at::kDouble) * 2);  // the old memory goes
  EXPECT_EQ(view.sum().item<double>(), 12);
  EXPECT_EQ(pool.bytes(), 48);
  buffer.Release();
  EXPECT_FALSE(buffer.adopted());
  EXPECT_EQ(pool.bytes(), 0);
  buffer.Allocate();  // of its own again
  EXPECT_EQ(pool.bytes(), 48);
}

TEST(FlatBufferTest, ReleasedMemoryIsTheNextOnes) {
  BufferPool pool;
  for (int i = 0; i < 3; ++i) {
    FlatBuffer buffer(&pool, 100, at::kFloat);
    buffer.Allocate();
    FlatBuffer moved = std::move(buffer);
    EXPECT_TRUE(moved.allocated());
    moved.Release();
  }
  EXPECT_EQ(pool.peak_bytes(), 400);
}

TEST(FlatBufferTest, ViewsKeepTheMemoryOfABufferThatIsGone) {
  at::Tensor view;
  {
    BufferPool pool;
    FlatBuffer buffer(&pool, 100, at::kFloat);
    buffer.Allocate();
    view = buffer.tensor().fill_(7);
  }
  EXPECT_EQ(view.sum().item<float>(), 700);
}

}  // namespace
}  // namespace plait::parallel
