// Gradients of replicas against the gradient of all their samples on one rank, in float64.
#include "parallel/gradient_reducer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>

#include "comm/testing/world.h"
#include "parallel/replicas.h"

namespace plait::parallel {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kWidths[] = {5, 7, 4, 2};
constexpr int kLayers = 3;

// Numbers in [-1, 1) from a recurrence: the same on every rank.
at::Tensor Numbers(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = static_cast<double>(seed >> 11) * 0x1p-52 - 1.0;
  }
  return tensor;
}

// Weights and biases of a small perceptron.
std::vector<at::Tensor> Parameters() {
  std::vector<at::Tensor> parameters;
  for (int layer = 0; layer < kLayers; ++layer) {
    parameters.push_back(Numbers({kWidths[layer], kWidths[layer + 1]}, layer).requires_grad_(true));
    parameters.push_back(Numbers({1, kWidths[layer + 1]}, 100 + layer).requires_grad_(true));
  }
  return parameters;
}

at::Tensor SamplesOf(int rank, int step = 0) {
  return Numbers({kBatch, kWidths[0]}, 1000 + 37 * rank + step);
}

// Mean over the samples. `layers` may leave the last ones out: their parameters are then not reached.
at::Tensor Loss(const std::vector<at::Tensor>& parameters, const at::Tensor& x, int layers = kLayers) {
  at::Tensor y = x;
  for (int layer = 0; layer < layers; ++layer) {
    y = at::tanh(at::mm(y, parameters[2 * layer]) + parameters[2 * layer + 1]);
  }
  return (y * y).sum() / static_cast<double>(x.size(0));
}

// The mean over `ranks` of the gradients of what each brings, on this rank alone.
std::vector<at::Tensor> SerialMean(int ranks,
                                   const std::function<at::Tensor(std::vector<at::Tensor>&, int)>& loss) {
  std::vector<at::Tensor> parameters = Parameters();
  at::Tensor total = loss(parameters, 0);
  for (int rank = 1; rank < ranks; ++rank) total = total + loss(parameters, rank);
  (total / static_cast<double>(ranks)).backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    gradients.push_back(parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter.detach()));
  }
  return gradients;
}

// Entries are sums of at most kBatch * ranks products of numbers of size 1, through three layers.
double Tolerance(int ranks) { return 64.0 * kBatch * ranks * 0x1p-53; }

void ExpectGradients(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& expected,
                     int ranks) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  EXPECT_EQ(FirstDifference(comm::testing::World(), gradients).rank, -1);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_LT((gradients[i] - expected[i]).abs().max().item<double>(), Tolerance(ranks)) << "parameter " << i;
  }
}

// How gradients are cut into buckets: each alone, all in one, pairs.
class Buckets : public ::testing::TestWithParam<GradientReducerOptions> {};

TEST_P(Buckets, GradientsAreTheMeanOverAllSamples) {
  const comm::Communicator& world = comm::testing::World();
  const std::vector<at::Tensor> parameters = Parameters();
  GradientReducer reducer(world, parameters, GetParam());
  for (int step = 0; step < 3; ++step) {
    for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    Loss(parameters, SamplesOf(world.rank(), step)).backward();
    const std::vector<at::Tensor> expected =
        SerialMean(world.size(),
                   [&](std::vector<at::Tensor>& own, int rank) { return Loss(own, SamplesOf(rank, step)); });
    std::vector<int> told(parameters.size(), 0);
    reducer.Finish([&](absl::Span<const std::size_t> reduced) {
      for (const std::size_t i : reduced) {
        ++told[i];  // complete by then
        EXPECT_LT((parameters[i].grad() - expected[i]).abs().max().item<double>(), Tolerance(world.size()));
      }
    });
    EXPECT_EQ(told, std::vector<int>(parameters.size(), 1));
    ExpectGradients(parameters, expected, world.size());
  }
}

TEST_P(Buckets, ParametersThatSomeRanksDoNotReachCountAsZeroThere) {
  const comm::Communicator& world = comm::testing::World();
  const std::vector<at::Tensor> parameters = Parameters();
  GradientReducer reducer(world, parameters, GetParam());
  const auto layers = [](int rank) { return rank % 2 == 0 ? 1 : 2; };  // nobody reaches the third
  Loss(parameters, SamplesOf(world.rank()), layers(world.rank())).backward();
  reducer.Finish();
  ExpectGradients(
      parameters,
      SerialMean(world.size(), [&](std::vector<at::Tensor>& own,
                                   int rank) { return Loss(own, SamplesOf(rank), layers(rank)); }),
      world.size());
}

TEST_P(Buckets, RanksMayMakeGradientsInOtherOrders) {
  const comm::Communicator& world = comm::testing::World();
  const std::vector<at::Tensor> parameters = Parameters();
  GradientReducer reducer(world, parameters, GetParam());
  // Odd ranks use the parameters in a second, shallow way; even ones in two sums the other way round.
  const auto loss = [](const std::vector<at::Tensor>& own, int rank) {
    at::Tensor sum = Loss(own, SamplesOf(rank));
    for (std::size_t i = 0; i < own.size(); ++i) {
      const at::Tensor& one = rank % 2 == 0 ? own[own.size() - 1 - i] : own[i];
      sum = rank % 2 == 0 ? (one * one).sum() + sum : sum + (one * one).sum();
    }
    return sum;
  };
  loss(parameters, world.rank()).backward();
  reducer.Finish();
  ExpectGradients(parameters, SerialMean(world.size(), loss), world.size());
}

TEST_P(Buckets, AccumulatesWithoutMessagesUntilItSynchronises) {
  const comm::Communicator& world = comm::testing::World();
  const std::vector<at::Tensor> parameters = Parameters();
  GradientReducer reducer(world, parameters, GetParam());
  const auto calls = [&] {
    std::int64_t sum = 0;
    const comm::Stats stats = world.stats();
    for (const auto& [axis, operations] : stats) {
      sum += operations[static_cast<int>(comm::Operation::kAllReduce)].calls;
    }
    return sum;
  };
  const std::int64_t before = calls();
  reducer.set_synchronizes(false);
  Loss(parameters, SamplesOf(world.rank(), 0)).backward();
  EXPECT_EQ(calls(), before);
  reducer.set_synchronizes(true);
  Loss(parameters, SamplesOf(world.rank(), 1)).backward();
  reducer.Finish();
  EXPECT_EQ(calls() - before, static_cast<std::int64_t>(reducer.bucket_bytes().size()));
  ExpectGradients(parameters,
                  SerialMean(world.size(),
                             [&](std::vector<at::Tensor>& own, int rank) {
                               return Loss(own, SamplesOf(rank, 0)) + Loss(own, SamplesOf(rank, 1));
                             }),
                  2 * world.size());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Buckets,
                         ::testing::Values(GradientReducerOptions{.alone_bytes = 0}, GradientReducerOptions{},
                                           GradientReducerOptions{.bucket_bytes = 160, .alone_bytes = 200}));

// Weights have 35, 28 and 8 numbers of 8 bytes, biases 7, 4 and 2; a packed bucket leaves when it is full, or
// last.
TEST(GradientReducer, LargeGradientsAreBucketsOfTheirOwn) {
  const std::vector<at::Tensor> parameters = Parameters();
  const GradientReducer reducer(comm::testing::World(), parameters,
                                {.bucket_bytes = 100, .alone_bytes = 200});
  EXPECT_EQ(reducer.bucket_bytes(), (std::vector<std::int64_t>{80, 224, 280, 88}));
}

TEST(GradientReducer, SendsEachGradientOnce) {
  const comm::Communicator world = comm::testing::World().Split(0, comm::testing::World().rank(), "dp");
  const std::vector<at::Tensor> parameters = Parameters();
  GradientReducer reducer(world, parameters, {});
  Loss(parameters, SamplesOf(world.rank())).backward();
  reducer.Finish();
  std::int64_t bytes = 0;
  for (const at::Tensor& parameter : parameters) bytes += static_cast<std::int64_t>(parameter.nbytes());
  const comm::Stats stats = world.stats();
  EXPECT_EQ(stats.at("dp")[static_cast<int>(comm::Operation::kAllReduce)].payload_bytes, bytes);
}

TEST(Replicas, ABroadcastMakesThemEqualAndADifferenceIsNamed) {
  const comm::Communicator& world = comm::testing::World();
  std::vector<at::Tensor> tensors = {Numbers({4}, 1), Numbers({2, 3}, world.rank())};
  const Difference before = FirstDifference(world, tensors);
  EXPECT_EQ(before.rank, world.size() > 1 ? 1 : -1);
  EXPECT_EQ(before.tensor, world.size() > 1 ? 1 : -1);
  BroadcastTensors(world, tensors, world.size() - 1);
  EXPECT_EQ(FirstDifference(world, tensors).rank, -1);
  EXPECT_EQ((tensors[1] - Numbers({2, 3}, world.size() - 1)).abs().max().item<double>(), 0);
  if (world.rank() == world.size() - 1) tensors[0][2] = -tensors[0][2];  // one sign bit
  const Difference after = FirstDifference(world, tensors);
  EXPECT_EQ(after.rank, world.size() > 1 ? world.size() - 1 : -1);
  EXPECT_EQ(after.tensor, world.size() > 1 ? 0 : -1);
}

}  // namespace
}  // namespace plait::parallel
