#include "parallel/training_state/training_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

constexpr char kModel[] = "model";
constexpr char kOptimizerStep[] = "optimizer.step";

data::DType TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return data::DType::kFloat32;
    case at::kDouble:
      return data::DType::kFloat64;
    case at::kBFloat16:
      return data::DType::kBFloat16;
    case at::kHalf:
      return data::DType::kFloat16;
    default:
      PLAIT_CHECK(false) << "checkpoints have no type " << tensor.scalar_type();
  }
  return data::DType::kFloat32;
}

std::string GroupOf(const std::string& moment) { return absl::StrCat("optimizer/", moment); }

// A flat share of one group, with the layout that says what it is made of.
struct Share {
  std::string group;
  const FlatLayout* layout;
  at::Tensor values;
};

TensorSpec SpecOf(const Share& share, const FlatParameter& parameter) {
  return {share.group, parameter.name, TypeOf(share.values), parameter.shape};
}

std::byte* At(const Share& share, std::int64_t offset) {
  return static_cast<std::byte*>(share.values.data_ptr()) + offset * share.values.element_size();
}

void AddPieces(const DataParallelAxes& axes, const Share& share, std::vector<TensorPiece>& pieces) {
  if (axes.replicate.rank() > 0) return;
  const auto keeps = std::make_shared<at::Tensor>(share.values);
  for (const FlatSlice& s : share.layout->Slices(axes.shard.rank())) {
    pieces.push_back({.tensor = SpecOf(share, share.layout->parameters()[s.parameter]),
                      .begin = s.begin,
                      .end = s.end,
                      .data = At(share, s.shard_offset),
                      .keeps = keeps});
  }
}

absl::Status ReadShare(Checkpoint& checkpoint, const DataParallelAxes& axes, const Share& share) {
  for (const FlatSlice& s : share.layout->Slices(axes.shard.rank())) {
    const TensorSpec tensor = SpecOf(share, share.layout->parameters()[s.parameter]);
    const auto bytes = static_cast<std::size_t>((s.end - s.begin) * share.values.element_size());
    PLAIT_RETURN_IF_ERROR(
        checkpoint.Read(PathOf(tensor), s.begin, s.end, absl::MakeSpan(At(share, s.shard_offset), bytes)));
  }
  return absl::OkStatus();
}

std::vector<TensorSpec> SpecsOf(const DataParallel& dp, const ShardedOptimizer* optimizer) {
  std::vector<TensorSpec> specs;
  std::vector<std::string> groups = {kModel};
  if (optimizer != nullptr) {
    for (const std::string& moment : optimizer->moment_names()) groups.push_back(GroupOf(moment));
  }
  for (const std::string& group : groups) {
    for (const Shard& shard : dp.shards()) {
      for (const FlatParameter& parameter : shard.layout->parameters()) {
        specs.push_back(SpecOf({group, shard.layout, shard.master}, parameter));
      }
    }
  }
  return specs;
}

// On the host, where files are read and written.
at::Tensor OnHost(const at::Tensor& values) { return values.to(at::kCPU); }

absl::Status ReadInto(Checkpoint& checkpoint, const DataParallelAxes& axes, const Share& share) {
  const at::Tensor host = OnHost(share.values);
  PLAIT_RETURN_IF_ERROR(ReadShare(checkpoint, axes, {share.group, share.layout, host}));
  if (!share.values.is_cpu()) share.values.copy_(host);
  return absl::OkStatus();
}

absl::Status RestoreOwn(Checkpoint& checkpoint, const DataParallel& dp, ShardedOptimizer* optimizer) {
  const at::NoGradGuard no_grad;
  PLAIT_RETURN_IF_ERROR(checkpoint.CheckTensors(SpecsOf(dp, optimizer)));
  for (const Shard& shard : dp.shards()) {
    PLAIT_RETURN_IF_ERROR(ReadInto(checkpoint, dp.axes(), {kModel, shard.layout, shard.master}));
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
  for (const Shard& shard : dp.shards()) {
    AddPieces(dp.axes(), {kModel, shard.layout, OnHost(shard.master)}, pieces);
  }
  if (optimizer == nullptr) return pieces;
  PLAIT_RETURN_IF_ERROR(optimizer->ForEachShard(
      /*changes=*/false, [&](std::size_t shard, const std::vector<at::Tensor>& moments) {
        for (std::size_t m = 0; m < moments.size(); ++m) {
          const at::Tensor values = optimizer->moments_stay() ? OnHost(moments[m]) : moments[m].clone();
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
