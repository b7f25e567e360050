#include "tools/odenet_training/nested.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "comm/communicator.h"
#include "comm/device_mesh.h"
#include "models/odenet/odenet.h"
#include "tools/odenet_training/study.h"
#include "tools/training/sharded_model.h"

namespace plait::odenet_training {
namespace {

Weights Coarse() {
  Weights weights = {{"opening.weight", at::rand({2, 2})}, {"controls.1.linear.bias", at::rand({2})}};
  // More than ten layers: names do not sort as numbers do.
  for (int i = 0; i < 12; ++i)
    weights[absl::StrCat("layers.", i, ".linear.weight")] = at::full({2, 2}, 10.0 * i);
  return weights;
}

// Where the model computes in bfloat16, finer levels still begin with float32.
TEST(MastersOfAllRanks, AreNotRoundedToTheTypeOfComputation) {
  OdeNetSettings settings;
  settings.dtype = "bfloat16";
  const comm::DeviceMesh mesh =
      *comm::DeviceMesh::Create(comm::Communicator::Self(), *settings.Axes(/*ranks=*/1));
  odenet::OdeNet net({.sample = {3}, .channels = 6, .layers = 4, .final_time = 1},
                     at::TensorOptions(at::kMeta).dtype(settings.master_type()));
  Weights drawn;
  training::TrainedModel trained = {.model = &net, .optimizer = {.lr = 1e-3}};
  trained.initialize = [&](std::size_t unit) {
    const std::vector<models::ParameterUnit> units = net.units();
    for (const models::ParameterSpec& spec : units[unit].parameters) {
      drawn[spec.name] = at::rand(spec.tensor.sizes());
      spec.tensor.detach().copy_(drawn[spec.name]);
    }
    return absl::OkStatus();
  };
  const auto model = training::ShardedModel::Create(settings, mesh, at::kCPU, trained);
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<Weights> masters = MastersOfAllRanks(**model);
  (*model)->WaitForParameters();
  ASSERT_TRUE(masters.ok()) << masters.status();
  EXPECT_EQ(masters->size(), drawn.size());
  for (const auto& [name, values] : drawn) EXPECT_TRUE(masters->at(name).equal(values)) << name;
}

TEST(Refined, LayersTakeTheirCoarseLayersWeights) {
  const Weights coarse = Coarse(), fine = Refined(coarse, 4, /*linear=*/false);
  EXPECT_EQ(fine.size(), 2 + 48u);
  for (int i = 0; i < 48; ++i) {
    EXPECT_EQ(fine.at(absl::StrCat("layers.", i, ".linear.weight"))[1][0].item<double>(), 10.0 * (i / 4))
        << i;
  }
  EXPECT_TRUE(fine.at("opening.weight").equal(coarse.at("opening.weight")));
  EXPECT_TRUE(fine.at("controls.1.linear.bias").equal(coarse.at("controls.1.linear.bias")));
}

TEST(Refined, LinearInterpolationIsConstantBehindTheLastLayer) {
  const Weights fine = Refined(Coarse(), 4, /*linear=*/true);
  for (int i = 0; i < 48; ++i) {
    const double expected = i < 44 ? 10.0 * i / 4 : 110;
    EXPECT_NEAR(fine.at(absl::StrCat("layers.", i, ".linear.weight"))[0][1].item<double>(), expected, 1e-5)
        << i;
  }
}

// With weights that are constant over a coarse layer, the finer network is the same equation with shorter steps: the
// difference of their outputs halves with the step (explicit Euler is of first order).
TEST(Refined, FinerNetworksSolveTheSameEquation) {
  const auto output = [](const Weights& weights, std::int64_t layers, const at::Tensor& x) {
    odenet::OdeNet net({.sample = {3}, .channels = 6, .layers = layers, .final_time = 1}, at::kDouble);
    for (const models::ParameterUnit& unit : net.units()) {
      for (const models::ParameterSpec& spec : unit.parameters)
        spec.tensor.detach().copy_(weights.at(spec.name));
    }
    return net.Forward(x).detach();
  };
  Weights weights;
  const odenet::OdeNet net({.sample = {3}, .channels = 6, .layers = 8, .final_time = 1}, at::kDouble);
  for (const models::ParameterUnit& unit : net.units()) {
    for (const models::ParameterSpec& spec : unit.parameters)
      weights[spec.name] = at::rand(spec.tensor.sizes(), at::kDouble) - 0.5;
  }
  const at::Tensor x = at::rand({4, 3}, at::kDouble);
  const auto error = [&](int factor) {
    const at::Tensor fine = output(Refined(weights, 256, false), 8 * 256, x);
    return (output(Refined(weights, factor, false), 8 * factor, x) - fine).abs().max().item<double>();
  };
  const double ratio = error(2) / error(4);
  EXPECT_GT(ratio, 1.9);
  EXPECT_LT(ratio, 2.2);
}

TEST(Study, SpreadOfNumbers) {
  const Spread odd = SpreadOf({3, 1, 8});
  EXPECT_DOUBLE_EQ(odd.mean, 4);
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.most, 8);
  EXPECT_DOUBLE_EQ(odd.least, 1);
  EXPECT_DOUBLE_EQ(odd.deviation, std::sqrt(13));  // (1 + 9 + 16) / 2
  EXPECT_DOUBLE_EQ(SpreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_DOUBLE_EQ(SpreadOf({4}).deviation, 0);
}

}  // namespace
}  // namespace plait::odenet_training
