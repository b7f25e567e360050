#include "tools/gpt_training/engine_state.h"

#include <ATen/ops/clone.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/pieces_of_tensor.h"

namespace plait::gpt_training {
namespace {

constexpr char kModel[] = "model";

std::string GroupOf(const std::string& moment) { return absl::StrCat("optimizer/", moment); }

// Calls visit(parameter, slice, values) for each part of a parameter that lies in `flat`, which is laid out
// as the shard.
template <typename Visit>
absl::Status VisitSlices(const parallel::DataParallel& engine, std::size_t shard, const at::Tensor& flat,
                         const Visit& visit) {
  const parallel::FlatLayout& layout = *engine.shards()[shard].layout;
  const int rank = layout.ranks() == 1 ? 0 : engine.axes().shard.rank();
  for (const parallel::FlatSlice& slice : layout.Slices(rank)) {
    PLAIT_RETURN_IF_ERROR(visit(layout.parameters()[slice.parameter], slice,
                                flat.narrow(0, slice.shard_offset, slice.end - slice.begin)));
  }
  return absl::OkStatus();
}

absl::Status AddPieces(const parallel::DataParallel& engine, std::size_t shard, const std::string& group,
                       const at::Tensor& flat, std::vector<parallel::TensorPiece>& pieces) {
  const auto add = [&](const parallel::FlatParameter& parameter, const parallel::FlatSlice& slice,
                       const at::Tensor& values) {
    pieces.push_back(parallel::PieceOfTensor(group, parameter.name, parameter.shape, slice.begin, values));
    return absl::OkStatus();
  };
  return VisitSlices(engine, shard, flat, add);
}

absl::Status ReadPieces(parallel::Checkpoint& checkpoint, const parallel::DataParallel& engine,
                        std::size_t shard, const std::string& group, const at::Tensor& flat) {
  const auto read = [&](const parallel::FlatParameter& parameter, const parallel::FlatSlice& slice,
                        const at::Tensor& values) {
    return parallel::ReadTensor(checkpoint, absl::StrCat(group, "/", parameter.name), slice.begin, values);
  };
  return VisitSlices(engine, shard, flat, read);
}

std::vector<parallel::TensorSpec> Expected(const parallel::DataParallel& engine,
                                           const parallel::ShardedOptimizer& optimizer) {
  std::vector<std::string> groups = {kModel};
  for (const std::string& moment : optimizer.moment_names()) groups.push_back(GroupOf(moment));
  std::vector<parallel::TensorSpec> expected;
  for (const std::string& group : groups) {
    for (const parallel::Shard& shard : engine.shards()) {
      for (const parallel::FlatParameter& parameter : shard.layout->parameters()) {
        expected.push_back({group, parameter.name, parallel::DTypeOf(shard.master), parameter.shape});
      }
    }
  }
  return expected;
}

}  // namespace

absl::StatusOr<std::vector<parallel::TensorPiece>> PiecesOf(const parallel::DataParallel& engine,
                                                            const parallel::ShardedOptimizer& optimizer,
                                                            bool copies_moments) {
  std::vector<parallel::TensorPiece> pieces;
  if (engine.axes().replicate.rank() != 0) return pieces;
  for (std::size_t shard = 0; shard < engine.shards().size(); ++shard) {
    PLAIT_RETURN_IF_ERROR(AddPieces(engine, shard, kModel, engine.shards()[shard].master, pieces));
  }
  const auto add_moments = [&](std::size_t shard, const std::vector<at::Tensor>& moments) -> absl::Status {
    for (std::size_t k = 0; k < moments.size(); ++k) {
      const at::Tensor values = copies_moments ? moments[k].clone() : moments[k];
      PLAIT_RETURN_IF_ERROR(AddPieces(engine, shard, GroupOf(optimizer.moment_names()[k]), values, pieces));
    }
    return absl::OkStatus();
  };
  PLAIT_RETURN_IF_ERROR(optimizer.ForEachShard(/*changes=*/false, add_moments));
  return pieces;
}

absl::Status ReadState(parallel::Checkpoint& checkpoint, const parallel::DataParallel& engine,
                       const parallel::ShardedOptimizer& optimizer) {
  PLAIT_RETURN_IF_ERROR(checkpoint.CheckTensors(Expected(engine, optimizer)));
  for (std::size_t shard = 0; shard < engine.shards().size(); ++shard) {
    PLAIT_RETURN_IF_ERROR(ReadPieces(checkpoint, engine, shard, kModel, engine.shards()[shard].master));
  }
  const auto read_moments = [&](std::size_t shard, const std::vector<at::Tensor>& moments) -> absl::Status {
    for (std::size_t k = 0; k < moments.size(); ++k) {
      PLAIT_RETURN_IF_ERROR(
          ReadPieces(checkpoint, engine, shard, GroupOf(optimizer.moment_names()[k]), moments[k]));
    }
    return absl::OkStatus();
  };
  return optimizer.ForEachShard(/*changes=*/true, read_moments);
}

}  // namespace plait::gpt_training
