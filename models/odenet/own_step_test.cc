// Own steps against LibTorch's operators in float64.
#include "models/odenet/own_step.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "base/testing/same_on_threads.h"

namespace plait::odenet {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors Theta(std::int64_t channels) {
  Tensors theta;
  for (int i = 0; i < 2; ++i) {
    theta.push_back(at::randn({channels, channels, 3, 3}) / 3);
    theta.push_back(at::randn({channels}));
  }
  return theta;
}

Tensors Leaves(const Tensors& tensors) {
  Tensors leaves;
  for (const at::Tensor& tensor : tensors) leaves.push_back(tensor.detach().requires_grad_(true));
  return leaves;
}

at::Tensor ByOperators(const at::Tensor& u, const Tensors& theta, double step) {
  const at::Tensor middle = at::relu(at::conv2d(u, theta[0], theta[1], 1, 1));
  return u + step * at::relu(at::conv2d(middle, theta[2], theta[3], 1, 1));
}

Tensors Doubles(const Tensors& tensors) {
  Tensors doubles;
  for (const at::Tensor& tensor : tensors) doubles.push_back(tensor.to(at::kDouble));
  return doubles;
}

// Each convolution sums 9 channels products and a bias, whose roundings are at most as many times eps / 2 of the sum of
// the magnitudes; those of the first one pass through the second.
TEST(OwnStep, IsThatOfTheOperators) {
  const at::NoGradGuard no_grad;
  for (const std::int64_t channels : {1, 3, 8, 16}) {
    at::manual_seed(channels);
    const at::Tensor u = at::randn({3, channels, 28, 28});
    const Tensors theta = Theta(channels), exact = Doubles(theta);
    ASSERT_TRUE(HasOwnStep(u, theta));
    const at::Tensor expected = ByOperators(u.to(at::kDouble), exact, 0.3);
    const auto magnitude = [&](int i, const at::Tensor& x) {
      return at::conv2d(x, exact[i].abs(), exact[i + 1].abs(), 1, 1);
    };
    const at::Tensor bound = u.abs() + 0.3 * magnitude(2, magnitude(0, u.to(at::kDouble).abs()));
    const double roundings = 2.0 * (9.0 * static_cast<double>(channels) + 1) + 2;
    const at::Tensor error = (OwnStep(u, theta, 0.3) - expected).abs();
    EXPECT_LE((error / bound).max().item<double>(), roundings * 0x1p-24) << channels;
    EXPECT_GT((expected - u).abs().max().item<double>(), 0.1);
    // A permuted state is one as well.
    const at::Tensor last = u.contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(OwnStep(last, theta, 0.3).equal(OwnStep(u, theta, 0.3)));
  }
}

// Multiples of powers of two, of which no sum in float32 is rounded (kernels/step_test.cc): the same gradients whatever
// else is asked for.
TEST(OwnStep, GradientsAreThoseOfTheOperators) {
  const auto draw = [](at::IntArrayRef sizes, int steps, double unit) {
    return at::randint(-steps, steps + 1, sizes, at::kFloat) * unit;
  };
  at::manual_seed(3);
  Tensors inputs = {draw({9, 3, 28, 28}, 2, 0.5)};
  for (int i = 0; i < 2; ++i) {
    inputs.push_back(draw({3, 3, 3, 3}, 1, 0.25));
    inputs.push_back(draw({3}, 1, 0.25));
  }
  const at::Tensor of_out = draw({9, 3, 28, 28}, 2, 0.5);
  const Tensors leaves = Leaves(inputs), exact = Leaves(Doubles(inputs));
  const Tensors theta(leaves.begin() + 1, leaves.end());
  const at::Tensor out = OwnStep(leaves[0], theta, 0.5);
  const at::Tensor reference = ByOperators(exact[0], {exact.begin() + 1, exact.end()}, 0.5);
  EXPECT_TRUE(out.to(at::kDouble).equal(reference));
  const Tensors expected = torch::autograd::grad({reference}, exact, {of_out.to(at::kDouble)});
  const auto gradients = [&](const Tensors& of) { return torch::autograd::grad({out}, of, {of_out}, true); };
  const auto expect = [&](const Tensors& found, std::size_t first) {
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i].to(at::kDouble).equal(expected[first + i])) << first + i;
  };
  expect(gradients(leaves), 0);
  expect(gradients({leaves[0]}), 0);
  expect(gradients(theta), 1);
  for (std::size_t i = 1; i < leaves.size(); ++i) expect(gradients({leaves[i]}), i);
}

TEST(OwnStep, HasTheSameBitsOnAnyNumberOfThreads) {
  at::manual_seed(1);
  const Tensors inputs = {at::randn({50, 4, 28, 28})}, weights = Theta(4);
  const at::Tensor of_out = at::randn({50, 4, 28, 28});
  ExpectSameOnThreads(2, [&] {
    Tensors leaves = Leaves(inputs);
    for (const at::Tensor& leaf : Leaves(weights)) leaves.push_back(leaf);
    const at::Tensor out = OwnStep(leaves[0], at::TensorList(leaves).slice(1), 0.1);
    Tensors results = torch::autograd::grad({out}, leaves, {of_out});
    results.push_back(out.detach());
    return results;
  });
}

TEST(OwnStep, CannotBeDifferentiatedAgain) {
  const Tensors leaves = Leaves({at::randn({1, 1, 4, 4})});
  const at::Tensor out = OwnStep(leaves[0], Theta(1), 0.1).square().sum();
  EXPECT_THROW(torch::autograd::grad({out}, leaves, {}, true, /*create_graph=*/true), c10::Error);
}

TEST(OwnStep, IsForFewChannelsOfFloatOnProcessors) {
  const at::Tensor u = at::zeros({1, 16, 4, 4});
  EXPECT_TRUE(HasOwnStep(u, Theta(16)));
  EXPECT_FALSE(HasOwnStep(at::zeros({1, 17, 4, 4}), Theta(17)));
  EXPECT_FALSE(HasOwnStep(u.to(at::kDouble), Theta(16)));
  EXPECT_FALSE(HasOwnStep(u, Doubles(Theta(16))));
  EXPECT_FALSE(HasOwnStep(u.to(at::kMeta), Theta(16)));
  EXPECT_FALSE(HasOwnStep(at::zeros({0, 16, 4, 4}), Theta(16)));
}

}  // namespace
}  // namespace plait::odenet
