// Bytes of meta tensors by hand, and output sizes of meta kernels against those on CPU.
#include "parallel/plan/meta_memory.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "parallel/context/fused_attention.h"
#include "parallel/plan/meta_kernels.h"

namespace plait::parallel {
namespace {

TEST(MetaMemory, CountsTensorsThatAreAlive) {
  MetaMemory& memory = MetaMemory::Install();
  const std::int64_t before = memory.live_bytes();
  memory.ForgetPeak();
  {
    const at::Tensor a = at::empty({3, 5}, at::device(at::kMeta).dtype(at::kFloat));
    const at::Tensor view = a.t();
    EXPECT_EQ(memory.live_bytes() - before, 60) << "a view takes nothing";
    const at::Tensor twice = a + a;
    EXPECT_EQ(memory.live_bytes() - before, 120);
  }
  EXPECT_EQ(memory.live_bytes(), before);
  EXPECT_EQ(memory.peak_bytes() - before, 120);
  memory.ForgetPeak();
  EXPECT_EQ(memory.peak_bytes(), before);
}

TEST(MetaMemory, LeavesOutWhatIsUncounted) {
  MetaMemory& memory = MetaMemory::Install();
  const std::int64_t before = memory.live_bytes();
  at::Tensor uncounted;
  {
    const MetaMemory::Uncounted here;
    uncounted = at::empty({7}, at::device(at::kMeta));
  }
  const at::Tensor counted = at::empty({9}, at::device(at::kMeta).dtype(at::kDouble));
  EXPECT_EQ(memory.live_bytes() - before, 72);
  uncounted.reset();
  EXPECT_EQ(memory.live_bytes() - before, 72);
}

using Operator = std::function<at::Tensor(const at::Tensor& x)>;  // of (2, 3, 4)

TEST(MetaKernels, HaveTheSizesOfTheProcessor) {
  RegisterMetaKernels();
  RegisterMetaKernels();
  const auto numbers = [](const at::Tensor& x, std::int64_t count) {
    return at::arange(count, at::device(x.device()).dtype(at::kLong));
  };
  const std::vector<Operator> operators = {
      [](const at::Tensor& x) { return x.gt(0).logical_and(x.select(0, 0).gt(0)); },
      [](const at::Tensor& x) { return x.select(0, 0).gt(0).logical_or(x.gt(0)); },
      [](const at::Tensor& x) { return x.gt(0).logical_and_(x.lt(1)); },
      [](const at::Tensor& x) { return x.logical_not(); },
      [](const at::Tensor& x) { return x.gt(0).logical_not_(); },
      [](const at::Tensor& x) { return x.masked_fill(x.gt(0), 7); },
      [](const at::Tensor& x) { return x.clone().masked_fill_(x.gt(0), 7); },
      [](const at::Tensor& x) { return at::where(x.gt(0), x, x.select(2, 0).unsqueeze(2)); },
      [](const at::Tensor& x) { return x.abs(); },
      [](const at::Tensor& x) { return x.relu(); },
      [](const at::Tensor& x) {
        return at::conv2d(at::ones({2, 3, 9, 7}, x.options()), at::ones({5, 3, 3, 2}, x.options()), {},
                          /*stride=*/{2, 1}, /*padding=*/at::IntArrayRef{1, 0}, /*dilation=*/{1, 2});
      },
      [](const at::Tensor& x) {
        return x.flip({1, 2});
      },
      [](const at::Tensor& x) { return x.transpose(0, 2).flip(0); },
      [&](const at::Tensor& x) { return x.index_select(-2, numbers(x, 2)); },
      [&](const at::Tensor& x) { return numbers(x, 9).floor_divide_(2); },
      [&](const at::Tensor& x) { return at::embedding_dense_backward(x[0], numbers(x, 3), 5, -1, false); },
  };
  const at::Tensor real = at::ones({2, 3, 4});
  const at::Tensor meta = at::empty({2, 3, 4}, at::device(at::kMeta));
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const at::Tensor expected = operators[i](real), found = operators[i](meta);
    EXPECT_TRUE(found.is_meta()) << i;
    EXPECT_EQ(found.sizes(), expected.sizes()) << i;
    EXPECT_EQ(found.scalar_type(), expected.scalar_type()) << i;
  }
}

TEST(MetaKernels, DifferentiateConvolutions) {
  RegisterMetaKernels();
  const at::TensorOptions meta = at::device(at::kMeta);
  const at::Tensor x = at::empty({2, 4, 9, 7}, meta).requires_grad_(),
                   weight = at::empty({6, 2, 3, 2}, meta).requires_grad_(),
                   bias = at::empty({6}, meta).requires_grad_();
  const at::Tensor y = at::conv2d(x, weight, bias, 1, at::IntArrayRef{0, 0}, 1, /*groups=*/2);
  const std::vector<at::Tensor> inputs = {x, weight, bias};
  const auto gradients = torch::autograd::grad({y.relu().sum()}, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(gradients[i].sizes(), inputs[i].sizes()) << i;
}

// The stand-in for the CPU kernel: the same outputs, and as many bytes saved for backward.
TEST(MetaMemory, OfFusedAttentionIsThatOfTheKernel) {
  using Tensors = std::vector<at::Tensor>;
  const auto tensors_of = [](at::Device device, at::ScalarType type, bool tokens_first) {
    const at::TensorOptions options = at::device(device).dtype(type);
    const at::Tensor x =
        tokens_first ? at::ones({2, 7, 3, 4}, options).transpose(1, 2) : at::ones({2, 3, 7, 4}, options);
    const auto [out, log_sum] = context_parallel::FusedForward(x, x, x, /*causal=*/true);
    const auto [query, key, value] =
        context_parallel::FusedBackward(x, x, x, x, out, log_sum, /*causal=*/true);
    return Tensors{out, log_sum, query, key, value};
  };
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const bool tokens_first : {false, true}) {
      const Tensors real = tensors_of(at::kCPU, type, tokens_first);
      const Tensors meta = tensors_of(at::kMeta, type, tokens_first);
      for (std::size_t i = 0; i < real.size(); ++i) {
        EXPECT_EQ(meta[i].sizes(), real[i].sizes()) << i;
        EXPECT_EQ(meta[i].strides(), real[i].strides()) << i;
        EXPECT_EQ(meta[i].scalar_type(), real[i].scalar_type()) << i;
      }
    }
  }
  MetaMemory& memory = MetaMemory::Install();
  const auto leaf = [] { return at::empty({2, 3, 7, 4}, at::device(at::kMeta)).requires_grad_(); };
  const Tensors inputs = {leaf(), leaf(), leaf()};
  const std::int64_t before = memory.live_bytes();
  const at::Tensor sum =
      context_parallel::FusedAttention(inputs[0], inputs[1], inputs[2], {}, /*causal=*/true).sum();
  const std::int64_t state = 4 * 2 * 3 * 7 * 4, log_sum = 4 * 2 * 3 * 7, scalar = 4;
  EXPECT_EQ(memory.live_bytes() - before, state + log_sum + scalar) << "output and sums are kept";
  const Tensors gradients = torch::autograd::grad({sum}, inputs);
  EXPECT_EQ(memory.live_bytes() - before, 3 * state + scalar) << "a gradient each";
}

}  // namespace
}  // namespace plait::parallel
