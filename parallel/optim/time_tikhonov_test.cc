// Regularisation in time on shards against autograd over whole parameters, in float64: every strategy, rows that are
// distributed over ranks, ranks without a block, blocks in several flat buffers, masters in a file.
#include "parallel/optim/time_tikhonov.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/block_model.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;

// With the row distributed over four ranks, one has no block.
constexpr int kBlocks = 3;
constexpr double kFactor = 0.37;
// Of at most six numbers below four each, times kFactor and the ranks' data gradients.
constexpr double kTolerance = 1e-14;

struct Setting {
  Strategy strategy;
  int replicas, shards, parts;
  bool in_file = false;
};

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (int parts = 1; parts <= World().size(); parts *= 2) {
    for (int shards = 1; shards * parts <= World().size(); shards *= 2) {
      const int replicas = World().size() / parts / shards;
      for (const Strategy s : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
        if (s == Strategy::kDdp && shards > 1) continue;
        settings.push_back({s, replicas, shards, parts});
      }
      settings.push_back({Strategy::kFsdp, replicas, shards, parts, /*in_file=*/true});
    }
  }
  return settings;
}

using Named = std::map<std::string, at::Tensor>;

std::string NameOf(int block, const char* what) { return absl::StrCat("block.", block, ".", what); }

// Of the whole row, the same on every rank.
Named Parameters() {
  Named parameters;
  for (int block = 0; block < kBlocks; ++block) {
    const auto seed = static_cast<std::uint64_t>(10 * block);
    parameters[NameOf(block, "weight")] = TestNumbers({5, 7}, seed + 1).requires_grad_(true);
    parameters[NameOf(block, "bias")] = TestNumbers({11}, seed + 2).requires_grad_(true);
  }
  return parameters;
}

Named PenaltyGradients(const Named& parameters) {
  at::Tensor sum = at::zeros({}, at::kDouble);
  std::vector<at::Tensor> leaves;
  for (const char* const what : {"weight", "bias"}) {
    for (int block = 0; block < kBlocks; ++block) {
      leaves.push_back(parameters.at(NameOf(block, what)));
      if (block > 0) sum = sum + (leaves.back() - leaves[leaves.size() - 2]).square().sum();
    }
  }
  const auto gradients = torch::autograd::grad({kFactor / 2 * sum}, leaves);
  Named by_name;
  for (int i = 0; i < 2 * kBlocks; ++i)
    by_name[NameOf(i % kBlocks, i < kBlocks ? "weight" : "bias")] = gradients[i];
  return by_name;
}

// The gradient of the data term on each data-parallel rank.
at::Tensor DataGradient(const at::Tensor& parameter) { return TestNumbers(parameter.sizes().vec(), 77); }

TEST(TimeTikhonov, AddsTheGradientOfThePenalty) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(absl::StrCat(Name(s.strategy), " ", s.replicas, " x ", s.shards, ", ", s.parts, " parts",
                              s.in_file ? ", masters in a file" : ""));
    const auto mesh = *comm::DeviceMesh::Create(
        World(), {{"dp_replicate", s.replicas}, {"dp_shard", s.shards}, {"lp", s.parts}});
    const Named parameters = Parameters();
    const Named penalty = PenaltyGradients(parameters);
    const auto first_of = [&](int part) { return kBlocks * part / s.parts; };
    const int part = mesh.axis("lp").rank(), first = first_of(part), last = first_of(part + 1);
    std::vector<models::ParameterUnit> units = {
        models::MakeUnit("root", {{"root", at::zeros({3}, at::kDouble).requires_grad_(true)}})};
    units[0].parameters[0].placement.replicated = {"lp"};
    for (int block = first; block < last; ++block) {
      const auto named = [&](const char* what) {
        return std::pair(NameOf(block, what),
                         parameters.at(NameOf(block, what)).detach().clone().requires_grad_(true));
      };
      units.push_back(
          models::MakeUnit(absl::StrCat("block.", block), {named("weight"), named("bias")}, block - first));
    }
    const char* const folder = std::getenv("TEST_TMPDIR");
    const auto dp = *DataParallel::Create(
        mesh, units,
        {.strategy = s.strategy,
         .part_bytes = 100,
         .masters_offload = {.target = s.in_file ? OffloadTarget::kFile : OffloadTarget::kMemory,
                             .folder = folder != nullptr ? folder : "/tmp"},
         .offloads_parameters = s.in_file});
    dp->Backward([&] {
      for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
        for (const models::ParameterSpec& spec : unit->parameters)
          dp->AddGradient(spec.tensor, DataGradient(spec.tensor));
      }
    });
    RowNeighbours neighbours = {.axis = mesh.axis("lp")};
    for (int other = 0; first < last && other < s.parts; ++other) {
      if (first_of(other) == first_of(other + 1)) continue;
      if (first_of(other + 1) == first) neighbours.before = other;
      if (first_of(other) == last) neighbours.behind = other;
    }
    EXPECT_TRUE(AddTimeTikhonov(*dp, kFactor, neighbours).ok());
    const double ranks = s.replicas * s.shards;
    for (const Shard& shard : dp->shards()) {
      for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
        const models::ParameterSpec& spec = *shard.parameters[slice.parameter];
        at::Tensor expected = ranks * DataGradient(spec.tensor);
        if (penalty.count(spec.name) > 0) expected = expected + penalty.at(spec.name);
        const at::Tensor mine = shard.gradient.narrow(0, slice.shard_offset, slice.end - slice.begin);
        const at::Tensor difference =
            mine - expected.flatten().narrow(0, slice.begin, slice.end - slice.begin);
        EXPECT_LE(difference.abs().max().item<double>(), kTolerance) << spec.name;
      }
    }
    dp->AllGatherParameters();
    dp->WaitForParameters();
  }
}

}  // namespace
}  // namespace plait::parallel
