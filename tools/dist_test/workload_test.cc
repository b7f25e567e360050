// Data-parallel steps against one process that has all the samples and an optimizer of LibTorch's own.
#include "tools/dist_test/workload.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include "base/seed.h"
#include "comm/testing/world.h"
#include "parallel/replicas.h"

namespace plait::dist_test {
namespace {

constexpr int kSteps = 10;

Config Small() {
  Config config;
  config.batch_size = 8;
  config.input_size = 12;
  config.output_size = 12;
  config.layer_sizes = {300, 70};  // gradients of 14 kB, 84 kB and 3 kB: packed and alone
  return config;
}

// Parameters are drawn from one stream, the samples of a rank from the rank's.
std::vector<at::Tensor> SerialParameters(const Config& config, int ranks) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(base::DeriveSeed(config.seed, "parameters"));
  mlp::Mlp network({.widths = Widths(config)}, at::kFloat);
  network.module()->to(at::kDouble);
  std::vector<at::Generator> samples;
  for (int rank = 0; rank < ranks; ++rank) {
    samples.push_back(
        at::make_generator<at::CPUGeneratorImpl>(base::DeriveSeed(config.seed, "samples", rank)));
  }
  torch::optim::Adam adam(network.parameters(), torch::optim::AdamOptions(config.lr));
  for (int step = 0; step < kSteps; ++step) {
    adam.zero_grad();
    for (at::Generator& stream : samples) {
      const at::Tensor x =
          at::rand({config.batch_size, config.input_size}, stream, at::kFloat).to(at::kDouble);
      const at::Tensor error = network.Forward(x) - x;
      ((error * error).sum() / static_cast<double>(ranks)).backward();
    }
    adam.step();
  }
  return network.parameters();
}

TEST(Workload, StepsAsOneProcessWithAllSamples) {
  const comm::Communicator& world = comm::testing::World();
  const Config config = Small();
  base::Profile profile("test");
  Workload workload(config, world, at::kCPU, profile);
  for (int step = 0; step < kSteps; ++step) workload.Step();
  EXPECT_EQ(parallel::FirstDifference(world, workload.parameters()).rank, -1);
  const std::vector<at::Tensor> expected = SerialParameters(config, world.size());
  const std::vector<at::Tensor> parameters = workload.parameters();
  // A step moves each parameter by at most about lr, in the direction of a gradient that float32 rounds.
  // Where a gradient is small beside its rounding the direction is open: lr * steps bounds any error; on
  // average far less.
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor error = (parameters[i].to(at::kDouble) - expected[i]).abs();
    EXPECT_LT(error.max().item<double>(), 2 * config.lr * kSteps) << "parameter " << i;
    EXPECT_LT(error.mean().item<double>(), 1e-3 * config.lr * kSteps) << "parameter " << i;
  }
}

TEST(Workload, TimesAddUp) {
  const comm::Communicator& world = comm::testing::World();
  const Config config = Small();
  base::Profile profile("test");
  Workload workload(config, world, at::kCPU, profile);
  const StepTimes times = workload.Step();
  EXPECT_GT(times.dtf(), 0);
  EXPECT_GE(times.dtb(), times.optimizer());
  EXPECT_DOUBLE_EQ(times.dt(), times.dtf() + times.dtb());
  EXPECT_EQ(workload.ParameterCount(), 12 * 300 + 300 + 300 * 70 + 70 + 70 * 12 + 12);
}

}  // namespace
}  // namespace plait::dist_test
