// Data-parallel steps against one process that has all samples, in float64 with torch::optim::Adam.
#include "tools/dist_test/workload.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <cmath>

#include "base/seed.h"
#include "comm/testing/world.h"
#include "tools/dist_test/step_summary.h"

namespace plait::dist_test {
namespace {

constexpr int kSteps = 10;

Config Small() {
  Config config;
  config.batch_size = 8;
  config.input_size = 12;
  config.output_size = 12;
  config.layer_sizes = {300, 70};
  return config;
}

// Parameters are drawn from one stream, samples from a stream per rank.
struct SerialProgram {
  SerialProgram(const Config& config, int ranks)
      : config(config), network((SeedParameters(config), mlp::Mlp({.widths = Widths(config)}, at::kFloat))) {
    network.module()->to(at::kDouble);
    for (int rank = 0; rank < ranks; ++rank) {
      samples.push_back(
          at::make_generator<at::CPUGeneratorImpl>(base::DeriveSeed(config.seed, "samples", rank)));
    }
  }
  static void SeedParameters(const Config& config) {
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(base::DeriveSeed(config.seed, "parameters"));
  }
  void Backward() {
    for (at::Generator& stream : samples) {
      const at::Tensor x =
          at::rand({config.batch_size, config.input_size}, stream, at::kFloat).to(at::kDouble);
      const at::Tensor error = network.Forward(x) - x;
      ((error * error).sum() / static_cast<double>(samples.size())).backward();
    }
  }
  const Config& config;
  mlp::Mlp network;
  std::vector<at::Generator> samples;
};

std::vector<at::Tensor> SerialParameters(const Config& config, int ranks) {
  SerialProgram program(config, ranks);
  torch::optim::Adam adam(program.network.parameters(), torch::optim::AdamOptions(config.lr));
  for (int step = 0; step < kSteps; ++step) {
    adam.zero_grad();
    program.Backward();
    adam.step();
  }
  return program.network.parameters();
}

double SerialGradientNorm(const Config& config, int ranks) {
  SerialProgram program(config, ranks);
  program.Backward();
  double squares = 0;
  for (const at::Tensor& p : program.network.parameters()) squares += p.grad().square().sum().item<double>();
  return std::sqrt(squares);
}

struct Case {
  parallel::Strategy strategy;
  std::string mesh;  // for ranks that it fits
};

void PrintTo(const Case& c, std::ostream* out) { *out << Name(c.strategy) << " " << c.mesh; }

class WorkloadTest : public ::testing::TestWithParam<Case> {};

TEST_P(WorkloadTest, StepsAsOneProcessWithAllSamples) {
  const comm::Communicator& world = comm::testing::World();
  Config config = Small();
  config.strategy = GetParam().strategy;
  config.mesh = GetParam().mesh;
  const absl::StatusOr<std::vector<comm::MeshAxis>> axes = MeshAxes(config, world.size());
  if (!axes.ok()) return;  // the mesh has another number of ranks
  const absl::StatusOr<comm::DeviceMesh> mesh = comm::DeviceMesh::Create(world, *axes);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  base::Profile profile("test");
  const absl::StatusOr<std::unique_ptr<Workload>> workload =
      Workload::Create(config, *mesh, at::kCPU, profile);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ((*workload)->ParameterCount(), 12 * 300 + 300 + 300 * 70 + 70 + 70 * 12 + 12);
  for (int step = 0; step < kSteps; ++step) (*workload)->Step();
  const std::vector<at::Tensor> expected = SerialParameters(config, world.size());
  // A step moves each parameter by at most about lr, in the direction of a gradient that float32 rounds.
  // Where a gradient is as small as its rounding error the direction is arbitrary: lr * steps bounds any
  // error, and the mean error is far below it.
  std::size_t i = 0;
  (*workload)->VisitParameters([&](const std::string& name, const at::Tensor& parameter) {
    ASSERT_LT(i, expected.size());
    const at::Tensor error = (parameter.to(at::kDouble) - expected[i++]).abs();
    EXPECT_LT(error.max().item<double>(), 2 * config.lr * kSteps) << name;
    EXPECT_LT(error.mean().item<double>(), 1e-3 * config.lr * kSteps) << name;
  });
  EXPECT_EQ(i, expected.size());
}

INSTANTIATE_TEST_SUITE_P(Strategies, WorkloadTest,
                         ::testing::Values(Case{parallel::Strategy::kDdp, ""},
                                           Case{parallel::Strategy::kZero1, ""},
                                           Case{parallel::Strategy::kZero2, ""},
                                           Case{parallel::Strategy::kFsdp, ""},
                                           Case{parallel::Strategy::kFsdp, "dp_replicate=2,dp_shard=2"}));

// Adam's steps do not show the scale of a gradient, so it is compared itself: the first step's, summed over the
// ranks' samples and divided by the ranks.
TEST(Workload, GradientsAreMeansOverRanks) {
  const comm::Communicator& world = comm::testing::World();
  const Config config = Small();
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(world, *MeshAxes(config, world.size()));
  base::Profile profile("test");
  const std::unique_ptr<Workload> workload = *Workload::Create(config, mesh, at::kCPU, profile);
  workload->Step();
  double squares = 0;
  for (const parallel::Shard& shard : workload->engine().shards()) {
    squares += shard.gradient.to(at::kDouble).square().sum().item<double>();
  }
  // A float32 gradient of some thousand products.
  EXPECT_NEAR(std::sqrt(squares) / SerialGradientNorm(config, world.size()), 1, 1e-4);
}

TEST(StepSummary, LossIsTheMeanAndTheSlowestRankCounts) {
  const comm::Communicator& world = comm::testing::World();
  const int n = world.size();
  StepTimes times;
  times.loss = world.rank() + 1;
  times.end_seconds = 2.0 * (world.rank() + 1);
  const StepSummary step = SummarizeStep(world, /*iter=*/3, /*batch_size=*/8, times);
  EXPECT_DOUBLE_EQ(step.loss, (n + 1) / 2.0);
  EXPECT_DOUBLE_EQ(step.sps, 8 / times.end_seconds);
  EXPECT_DOUBLE_EQ(step.sps_world, 8.0 * n / (2.0 * n));
  EXPECT_EQ(step.iter, 3);
}

TEST(Workload, MeasuresItsParts) {
  const comm::Communicator& world = comm::testing::World();
  const Config config = Small();
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(world, *MeshAxes(config, world.size()));
  base::Profile profile("test");
  const std::unique_ptr<Workload> workload = *Workload::Create(config, mesh, at::kCPU, profile);
  const StepTimes times = workload->Step();
  EXPECT_GT(times.dtf(), 0);
  EXPECT_GE(times.dtb(), times.optimizer());
  EXPECT_DOUBLE_EQ(times.dt(), times.dtf() + times.dtb());
}

}  // namespace
}  // namespace plait::dist_test
