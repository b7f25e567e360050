#include "parallel/training_state/training_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/byte_stream.h"
#include "comm/gathered_text.h"
#include "parallel/checkpoint/pieces_of_tensor.h"

namespace plait::parallel {
namespace {

constexpr char kModel[] = "model";
constexpr char kOptimizerStep[] = "optimizer.step";

std::string GroupOf(const std::string& moment) { return absl::StrCat("optimizer/", moment); }

// A flat shard of one group.
struct GroupShard {
  std::string group;
  const Shard& shard;
  at::Tensor values;
};

TensorSpec SpecOf(const std::string& group, const at::Tensor& values,
                  const models::ParameterSpec& parameter) {
  return {group, parameter.name, values.scalar_type(),
          WholeShape(parameter.tensor.sizes(), parameter.placement)};
}

at::Tensor ValuesOf(const GroupShard& own, const FlatSlice& slice) {
  return own.values.narrow(0, slice.shard_offset, slice.end - slice.begin);
}

// Slices, and parameters without elements, which have none: a piece declares them.
std::vector<FlatSlice> SlicesToSave(const Shard& shard) {
  std::vector<FlatSlice> slices = shard.layout->Slices(shard.rank);
  for (std::size_t i = 0; i < shard.parameters.size(); ++i) {
    if (shard.layout->parameters()[i].count == 0) slices.push_back({.parameter = i});
  }
  return slices;
}

void AddPieces(const GroupShard& own, std::vector<TensorPiece>& pieces) {
  for (const FlatSlice& s : SlicesToSave(own.shard)) {
    if (!own.shard.primary[s.parameter]) continue;
    const models::ParameterSpec& p = *own.shard.parameters[s.parameter];
    for (TensorPiece& piece :
         PiecesOfPlacement(own.group, p.name, p.tensor.sizes(), p.placement, s.begin, ValuesOf(own, s))) {
      pieces.push_back(std::move(piece));
    }
  }
}

absl::Status ReadInto(Checkpoint& checkpoint, const GroupShard& own) {
  for (const FlatSlice& s : own.shard.layout->Slices(own.shard.rank)) {
    const models::ParameterSpec& p = *own.shard.parameters[s.parameter];
    const std::string path = PathOf(SpecOf(own.group, own.values, p));
    PLAIT_RETURN_IF_ERROR(ReadPlacement(checkpoint, path, p.placement, s.begin, ValuesOf(own, s)));
  }
  return absl::OkStatus();
}

std::vector<TensorSpec> SpecsOf(const DataParallel& dp, const ShardedOptimizer* optimizer) {
  std::vector<TensorSpec> specs;
  const at::Tensor typed = at::empty({0}, dp.master_options());
  std::vector<std::string> groups = {kModel};
  if (optimizer != nullptr) {
    for (const std::string& moment : optimizer->moment_names()) groups.push_back(GroupOf(moment));
  }
  for (const std::string& group : groups) {
    for (const Shard& shard : dp.shards()) {
      for (const models::ParameterSpec* p : shard.parameters) specs.push_back(SpecOf(group, typed, *p));
    }
  }
  for (const ReplicatedTensor& replicated : dp.replicated_tensors()) {
    specs.push_back(SpecOf(kModel, replicated.parameter->tensor, *replicated.parameter));
  }
  return specs;
}

// Collective. Ranks along pipeline and layer-parallel axes have different tensors: returns those of all ranks, each
// once.
std::vector<TensorSpec> SpecsOfAllRanks(const DataParallel& dp, const ShardedOptimizer* optimizer) {
  comm::ByteWriter mine;
  for (const TensorSpec& spec : SpecsOf(dp, optimizer)) WriteSpec(spec, mine);
  std::vector<TensorSpec> all;
  std::set<std::string> seen;
  for (const std::string& bytes : comm::GatherText(dp.mesh().world(), mine.Take())) {
    for (comm::ByteReader reader(bytes); !reader.at_end();) {
      TensorSpec spec = ReadSpec(reader);
      const bool is_new = seen.insert(absl::StrCat(PathOf(spec), " ", TypeAndShapeOf(spec))).second;
      if (is_new) all.push_back(std::move(spec));
    }
  }
  return all;
}

absl::Status RestoreOwn(Checkpoint& checkpoint, const DataParallel& dp, ShardedOptimizer* optimizer,
                        const std::vector<TensorSpec>& expected) {
  const at::NoGradGuard no_grad;
  PLAIT_RETURN_IF_ERROR(checkpoint.CheckTensors(expected));
  for (std::size_t shard = 0; shard < dp.shards().size(); ++shard) {
    PLAIT_RETURN_IF_ERROR(dp.VisitMaster(shard, /*changes=*/true, [&](const at::Tensor& master) {
      return ReadInto(checkpoint, {kModel, dp.shards()[shard], master});
    }));
  }
  for (const ReplicatedTensor& replicated : dp.replicated_tensors()) {
    const models::ParameterSpec& p = *replicated.parameter;
    const std::string path = PathOf(SpecOf(kModel, p.tensor, p));
    PLAIT_RETURN_IF_ERROR(ReadPlacement(checkpoint, path, p.placement, /*begin=*/0, p.tensor));
  }
  if (optimizer == nullptr) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t steps, checkpoint.Integer(kOptimizerStep));
  optimizer->set_steps(steps);
  return optimizer->ForEachShard(
      /*changes=*/true, [&](std::size_t shard, const std::vector<at::Tensor>& moments) {
        for (std::size_t m = 0; m < moments.size(); ++m) {
          PLAIT_RETURN_IF_ERROR(
              ReadInto(checkpoint, {GroupOf(optimizer->moment_names()[m]), dp.shards()[shard], moments[m]}));
        }
        return absl::OkStatus();
      });
}

}  // namespace

absl::StatusOr<std::vector<TensorPiece>> PiecesOf(const DataParallel& dp, const ShardedOptimizer* optimizer) {
  const at::NoGradGuard no_grad;
  std::vector<TensorPiece> pieces;
  for (std::size_t shard = 0; shard < dp.shards().size(); ++shard) {
    PLAIT_RETURN_IF_ERROR(dp.VisitMaster(shard, /*changes=*/false, [&](const at::Tensor& master) {
      const at::Tensor values = dp.masters_resident() ? master : master.clone();
      AddPieces({kModel, dp.shards()[shard], values}, pieces);
      return absl::OkStatus();
    }));
  }
  for (const ReplicatedTensor& replicated : dp.replicated_tensors()) {
    const models::ParameterSpec& p = *replicated.parameter;
    if (!replicated.primary) continue;
    for (TensorPiece& piece :
         PiecesOfPlacement(kModel, p.name, p.tensor.sizes(), p.placement, /*begin=*/0, p.tensor)) {
      pieces.push_back(std::move(piece));
    }
  }
  if (optimizer == nullptr) return pieces;
  PLAIT_RETURN_IF_ERROR(optimizer->ForEachShard(
      /*changes=*/false, [&](std::size_t shard, const std::vector<at::Tensor>& moments) {
        for (std::size_t m = 0; m < moments.size(); ++m) {
          const at::Tensor values = optimizer->moments_resident() ? moments[m] : moments[m].clone();
          AddPieces({GroupOf(optimizer->moment_names()[m]), dp.shards()[shard], values}, pieces);
        }
        return absl::OkStatus();
      }));
  return pieces;
}

absl::Status Restore(Checkpoint& checkpoint, DataParallel& dp, ShardedOptimizer* optimizer) {
  dp.WaitForParameters();  // they are about to be overwritten
  const std::vector<TensorSpec> expected = SpecsOfAllRanks(dp, optimizer);
  PLAIT_RETURN_IF_ERROR(dp.mesh().world().Agree(RestoreOwn(checkpoint, dp, optimizer, expected)));
  dp.AllGatherParameters();
  return absl::OkStatus();
}

}  // namespace plait::parallel
