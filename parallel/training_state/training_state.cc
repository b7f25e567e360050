#include "parallel/training_state/training_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/pieces_of_tensor.h"

namespace plait::parallel {
namespace {

constexpr char kModel[] = "model";
constexpr char kOptimizerStep[] = "optimizer.step";

std::string GroupOf(const std::string& moment) { return absl::StrCat("optimizer/", moment); }

// A flat share of one group, with the layout that says what it is made of.
struct Share {
  std::string group;
  const FlatLayout* layout;
  at::Tensor values;
};

TensorSpec SpecOf(const Share& share, const FlatParameter& parameter) {
  return {share.group, parameter.name, DTypeOf(share.values), parameter.shape};
}

at::Tensor ValuesOf(const Share& share, const FlatSlice& slice) {
  return share.values.narrow(0, slice.shard_offset, slice.end - slice.begin);
}

void AddPieces(const DataParallelAxes& axes, const Share& share, std::vector<TensorPiece>& pieces) {
  if (axes.replicate.rank() > 0) return;
  for (const FlatSlice& s : share.layout->Slices(axes.shard.rank())) {
    const FlatParameter& p = share.layout->parameters()[s.parameter];
    pieces.push_back(PieceOfTensor(share.group, p.name, p.shape, s.begin, ValuesOf(share, s)));
  }
}

absl::Status ReadInto(Checkpoint& checkpoint, const DataParallelAxes& axes, const Share& share) {
  for (const FlatSlice& s : share.layout->Slices(axes.shard.rank())) {
    const TensorSpec tensor = SpecOf(share, share.layout->parameters()[s.parameter]);
    PLAIT_RETURN_IF_ERROR(ReadTensor(checkpoint, PathOf(tensor), s.begin, ValuesOf(share, s)));
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
      for (const FlatParameter& parameter : shard.layout->parameters()) {
        specs.push_back(SpecOf({group, shard.layout, typed}, parameter));
      }
    }
  }
  return specs;
}

absl::Status RestoreOwn(Checkpoint& checkpoint, const DataParallel& dp, ShardedOptimizer* optimizer) {
  const at::NoGradGuard no_grad;
  PLAIT_RETURN_IF_ERROR(checkpoint.CheckTensors(SpecsOf(dp, optimizer)));
  for (std::size_t shard = 0; shard < dp.shards().size(); ++shard) {
    PLAIT_RETURN_IF_ERROR(dp.VisitMaster(shard, /*changes=*/true, [&](const at::Tensor& master) {
      return ReadInto(checkpoint, dp.axes(), {kModel, dp.shards()[shard].layout, master});
    }));
  }
  if (optimizer == nullptr) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t steps, checkpoint.Integer(kOptimizerStep));
  optimizer->set_steps(steps);
  return optimizer->ForEachShard(
      /*changes=*/true, [&](std::size_t shard, const std::vector<at::Tensor>& moments) {
        for (std::size_t m = 0; m < moments.size(); ++m) {
          const Share share = {GroupOf(optimizer->moment_names()[m]), dp.shards()[shard].layout, moments[m]};
          PLAIT_RETURN_IF_ERROR(ReadInto(checkpoint, dp.axes(), share));
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
      const at::Tensor values = dp.masters_stay() ? master : master.clone();
      AddPieces(dp.axes(), {kModel, dp.shards()[shard].layout, values}, pieces);
      return absl::OkStatus();
    }));
  }
  if (optimizer == nullptr) return pieces;
  PLAIT_RETURN_IF_ERROR(optimizer->ForEachShard(
      /*changes=*/false, [&](std::size_t shard, const std::vector<at::Tensor>& moments) {
        for (std::size_t m = 0; m < moments.size(); ++m) {
          const at::Tensor values = optimizer->moments_stay() ? moments[m] : moments[m].clone();
          AddPieces(dp.axes(), {GroupOf(optimizer->moment_names()[m]), dp.shards()[shard].layout, values},
                    pieces);
        }
        return absl::OkStatus();
      }));
  return pieces;
}

absl::Status Restore(Checkpoint& checkpoint, DataParallel& dp, ShardedOptimizer* optimizer) {
  dp.WaitForParameters();  // they are about to be overwritten
  PLAIT_RETURN_IF_ERROR(AgreeAlongAxes(dp.axes(), RestoreOwn(checkpoint, dp, optimizer)));
  dp.Publish();
  return absl::OkStatus();
}

}  // namespace plait::parallel
