// Units whose parameters are replicated, split or partial along further axes of the mesh: sums, the global norm,
// buffers and frozen parameters, against references that every rank computes by itself in float64.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;
using models::ParameterRole;
using models::ParameterSpec;
using models::ParameterUnit;
using ::testing::HasSubstr;

// Sums of four numbers below one, and the norm of some hundred of them.
constexpr double kTolerance = 1e-14;

struct Setting {
  Strategy strategy;
  int replicas, shards, tp;
};

// All sizes for which the world has enough ranks beside a second axis.
std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (int tp = 1; tp <= World().size(); tp *= 2) {
    for (int shards = 1; shards * tp <= World().size(); shards *= 2) {
      for (const Strategy s : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
        if (s == Strategy::kDdp && shards > 1) continue;
        settings.push_back({s, World().size() / tp / shards, shards, tp});
      }
    }
  }
  return settings;
}

std::string TextOf(const Setting& s) {
  return std::string(Name(s.strategy)) + " " + std::to_string(s.replicas) + " x " + std::to_string(s.shards) +
         " x tp " + std::to_string(s.tp);
}

comm::DeviceMesh MeshOf(const Setting& s) {
  return *comm::DeviceMesh::Create(World(),
                                   {{"dp_replicate", s.replicas}, {"dp_shard", s.shards}, {"tp", s.tp}});
}

// Indices into the block's unit.
enum { kSplit, kNorm, kPartialBias, kCount };

// A block with a weight that is split along tp, a norm that every rank of it has with the same gradient, and
// a bias whose gradient is partial.
std::vector<ParameterUnit> Units() {
  const auto parameter = [](std::vector<std::int64_t> sizes) {
    return at::zeros(sizes, at::kDouble).requires_grad_(true);
  };
  ParameterUnit unit = models::MakeUnit(
      "block", {{"weight", parameter({5, 7})}, {"norm", parameter({11})}, {"bias", parameter({3})}}, 0);
  unit.parameters[kNorm].placement.replicated = {"tp"};
  unit.parameters[kPartialBias].placement.partial = {"tp"};
  return {models::MakeUnit("root", {}), unit};
}

// Of the rank with these coordinates; the norm's does not depend on tp.
at::Tensor Gradient(int parameter, const ParameterSpec& spec, int replica, int shard, int tp) {
  const int of_tp = parameter == kNorm ? 0 : tp;
  return TestNumbers(spec.tensor.sizes().vec(), 1000 * parameter + 100 * replica + 10 * shard + of_tp + 1);
}

// The sum that belongs to a rank with coordinate `tp`.
at::Tensor Expected(const Setting& s, int parameter, const ParameterSpec& spec, int tp) {
  at::Tensor sum = at::zeros(spec.tensor.sizes(), at::kDouble);
  for (int replica = 0; replica < s.replicas; ++replica) {
    for (int shard = 0; shard < s.shards; ++shard) {
      for (int t = 0; t < s.tp; ++t) {
        if (parameter == kPartialBias || t == tp) sum += Gradient(parameter, spec, replica, shard, t);
      }
    }
  }
  return sum;
}

double ExpectedNorm(const Setting& s, const std::vector<ParameterUnit>& units) {
  double squares = 0;
  for (int parameter = 0; parameter < kCount; ++parameter) {
    const ParameterSpec& spec = units[1].parameters[parameter];
    for (int tp = 0; tp < (parameter == kSplit ? s.tp : 1); ++tp) {
      const at::Tensor sum = Expected(s, parameter, spec, tp);
      squares += (sum * sum).sum().item<double>();
    }
  }
  return std::sqrt(squares);
}

TEST(Mesh, SumsAndNormsCountEveryElementOnce) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    const comm::DeviceMesh mesh = MeshOf(s);
    const std::vector<int>& at = mesh.Coordinates();
    const std::vector<ParameterUnit> units = Units();
    const auto dp = *DataParallel::Create(mesh, units, {.strategy = s.strategy});
    for (int step = 0; step < 2; ++step) {
      dp->Backward([&] {
        for (int p = kCount - 1; p >= 0; --p) {
          const ParameterSpec& spec = units[1].parameters[p];
          dp->AddGradient(spec.tensor, Gradient(p, spec, at[0], at[1], at[2]));
        }
      });
      dp->SumPartialGradients();
      for (const Shard& shard : dp->shards()) {
        for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
          const auto p = static_cast<int>(slice.parameter);
          const at::Tensor sum = Expected(s, p, *shard.parameters[p], at[2]).flatten();
          const at::Tensor mine = shard.gradient.narrow(0, slice.shard_offset, slice.end - slice.begin);
          const at::Tensor difference = mine - sum.narrow(0, slice.begin, slice.end - slice.begin);
          EXPECT_LE(difference.abs().max().item<double>(), kTolerance * World().size())
              << shard.parameters[p]->name;
        }
      }
      EXPECT_NEAR(dp->GradientNorm() / ExpectedNorm(s, units), 1, kTolerance * 100);
      dp->AllGatherParameters();
    }
    dp->WaitForParameters();
  }
}

TEST(Mesh, InitialValuesAreThoseOfTheFirstRankThatHasThem) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    const comm::DeviceMesh mesh = MeshOf(s);
    std::vector<ParameterUnit> units = Units();
    {
      const at::NoGradGuard no_grad;
      for (ParameterSpec& spec : units[1].parameters) spec.tensor.fill_(World().rank());
    }
    const auto dp = *DataParallel::Create(mesh, units, {.strategy = s.strategy});
    const int tp = mesh.Coordinates()[2];
    dp->VisitUnsharded([&](const ParameterUnit& unit) {
      for (const ParameterSpec& spec : unit.parameters) {
        const double first = spec.name == "weight" ? tp : 0;  // rank tp has coordinates (0, 0, tp)
        EXPECT_TRUE(spec.tensor.eq(first).all().item<bool>()) << spec.name;
      }
    });
  }
}

TEST(Mesh, UnitsMayDifferAlongAxesThatDoNotShareThem) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    const comm::DeviceMesh mesh = MeshOf(s);
    const int tp = mesh.Coordinates()[2];
    // As many blocks as the coordinate says, as on stages of a pipeline.
    std::vector<ParameterUnit> units;
    for (int block = 0; block <= tp; ++block) {
      const std::string name = "block." + std::to_string(tp) + "." + std::to_string(block);
      units.push_back(models::MakeUnit(
          name, {{name + ".weight", at::full({3, 3}, 2.0, at::kDouble).requires_grad_(true)}}, block));
    }
    const auto dp = *DataParallel::Create(mesh, units, {.strategy = s.strategy});
    dp->Backward([&] {
      for (const ParameterUnit& unit : units) {
        dp->AddGradient(unit.parameters[0].tensor, at::full({3, 3}, 1.0, at::kDouble));
      }
    });
    // 9 elements per block, each the sum of ones over the data ranks.
    const double blocks = s.tp * (s.tp + 1) / 2.0, sum = s.replicas * s.shards;
    EXPECT_NEAR(dp->GradientNorm() / (sum * std::sqrt(9 * blocks)), 1, kTolerance * 100);
    ShardedOptimizer optimizer(*dp, {.kind = OptimizerKind::kSgd, .lr = 1 / sum});
    ASSERT_TRUE(optimizer.Step().status.ok());
    dp->VisitUnsharded([&](const ParameterUnit& unit) {
      EXPECT_TRUE(unit.parameters[0].tensor.eq(1.0).all().item<bool>()) << unit.name;
    });
  }
}

TEST(Mesh, UnitsThatShareAnAxisMustNotDiffer) {
  if (World().size() == 1) return;  // no other rank
  const Setting s = {Strategy::kZero1, 1, 1, World().size()};
  std::vector<ParameterUnit> units = Units();
  if (World().rank() == World().size() - 1) units[1].parameters[kNorm].name = "scale";
  const auto dp = DataParallel::Create(MeshOf(s), units, {.strategy = s.strategy});
  EXPECT_THAT(std::string(dp.status().message()), HasSubstr("along tp is not that of rank 0"));
}

TEST(Mesh, BuffersFollowTheFirstRankAndFrozenParametersStay) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    const comm::DeviceMesh mesh = MeshOf(s);
    std::vector<ParameterUnit> units = Units();
    const double rank = World().rank();
    units[1].parameters.push_back(
        {.name = "running_mean", .tensor = at::full({4}, rank, at::kDouble), .role = ParameterRole::kBuffer});
    units[1].parameters.push_back({.name = "batches",
                                   .tensor = at::full({}, World().rank(), at::kLong),
                                   .role = ParameterRole::kBuffer});
    units[1].parameters.push_back(
        {.name = "table", .tensor = at::full({2}, rank, at::kDouble), .role = ParameterRole::kFrozen});
    units[1].parameters.push_back({.name = "tied",
                                   .tensor = at::full({2}, rank, at::kDouble),
                                   .role = ParameterRole::kFrozen,
                                   .placement = {.partial = {"tp"}}});
    const auto dp = *DataParallel::Create(mesh, units, {.strategy = s.strategy});
    EXPECT_TRUE(units[1].parameters[6].tensor.eq(0).all().item<bool>()) << "of another rank than the first";
    const double first = mesh.Coordinates()[2];  // of rank (0, 0, tp)
    at::Tensor mean = units[1].parameters[3].tensor, count = units[1].parameters[4].tensor;
    const at::Tensor table = units[1].parameters[5].tensor;
    EXPECT_TRUE(mean.eq(first).all().item<bool>() && table.eq(first).all().item<bool>());
    // Running statistics of own samples.
    mean.add_(10 + rank);
    count.add_(1);
    dp->Backward([&] { dp->AddGradient(units[1].parameters[kNorm].tensor, at::zeros({11}, at::kDouble)); });
    ShardedOptimizer optimizer(*dp, {.lr = 1, .weight_decay = 1});
    ASSERT_TRUE(optimizer.Step().status.ok());
    dp->WaitForParameters();
    EXPECT_TRUE(mean.eq(first + 10 + first).all().item<bool>()) << mean;
    EXPECT_EQ(count.item<std::int64_t>(), static_cast<std::int64_t>(first) + 1);
    EXPECT_TRUE(table.eq(first).all().item<bool>()) << "stepped";
    EXPECT_EQ(dp->replicated_tensors().size(), 4u);
  }
}

}  // namespace
}  // namespace plait::parallel
