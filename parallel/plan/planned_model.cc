#include "parallel/plan/planned_model.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

using models::ParameterSpec;
using models::ParameterUnit;
using tensor_parallel::Split;
using tensor_parallel::SplitGroup;
using tensor_parallel::SplitLayer;

// A rank's part of a split parameter: the dimension that is cut, and its local size.
struct Piece {
  int dimension = 0;
  std::int64_t size = 0;
  bool cut = true;  // false: whole, with a part of the gradient
};

using Pieces = std::map<const void*, Piece>;  // by parameter

std::int64_t SizeOf(const SplitLayer& layer) {
  return layer.weight.size(layer.split == Split::kRows ? 1 : 0);
}

void AddPieces(const SplitLayer& layer, int rank, int ranks, Pieces& pieces) {
  const std::int64_t step = layer.sections * layer.granularity;
  const std::int64_t size = tensor_parallel::PartOf(SizeOf(layer) / step, rank, ranks).size() * step;
  const Piece piece = {layer.split == Split::kRows ? 1 : 0, size, layer.cut};
  pieces[layer.weight.unsafeGetTensorImpl()] = piece;
  const bool has_part_of_bias = layer.bias.defined() && (layer.split != Split::kRows || !layer.cut);
  if (has_part_of_bias) pieces[layer.bias.unsafeGetTensorImpl()] = piece;
}

void Place(ParameterSpec& spec, const Pieces& pieces, bool sequence_parallel, bool all_rows) {
  const auto found = pieces.find(spec.tensor.unsafeGetTensorImpl());
  if (found == pieces.end()) {
    const bool part = sequence_parallel && !all_rows;
    (part ? spec.placement.partial : spec.placement.replicated).push_back("tp");
    return;
  }
  if (!found->second.cut) {
    spec.placement.partial.push_back("tp");
    return;
  }
  std::vector<std::int64_t> sizes = spec.tensor.sizes().vec();
  spec.placement.shape = sizes;
  sizes[found->second.dimension] = found->second.size;
  spec.placement.boxes = {{std::vector<std::int64_t>(sizes.size(), 0), sizes}};
  spec.tensor = at::empty(sizes, spec.tensor.options());
}

absl::Status Cannot(absl::string_view axis, int ranks, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(axis, "=", ranks, ": ", why));
}

absl::Status CheckTensor(const PlannedModel& model, int ranks) {
  if (ranks == 1) return absl::OkStatus();
  for (const SplitGroup& group : model.model->SplitGroups(ranks)) {
    for (const SplitLayer& layer : group.layers) {
      if (!layer.cut) continue;
      const std::int64_t pieces = SizeOf(layer) / (layer.sections * layer.granularity);
      if (group.equal_parts ? pieces % ranks == 0 : pieces >= ranks) continue;
      return Cannot(
          "tp", ranks,
          absl::StrCat(layer.name, " has ", pieces, group.equal_parts ? " heads" : " columns or rows",
                       "; expected ", group.equal_parts ? "a multiple" : "at least one for each rank"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToText(const MeshSizes& mesh) {
  std::string text;
  const std::pair<const char*, int> axes[] = {{"pp", mesh.pp},
                                              {"dp_replicate", mesh.dp_replicate},
                                              {"dp_shard", mesh.dp_shard},
                                              {"cp", mesh.cp},
                                              {"tp", mesh.tp}};
  for (const auto& [name, size] : axes) {
    if (size > 1) absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", size);
  }
  return text.empty() ? "1 rank" : text;
}

std::int64_t PlannedModel::ParameterCount() const {
  std::int64_t count = 0;
  for (const ParameterUnit& unit : model->units()) {
    count += models::CountParameters({unit}) * (unit.block == ParameterUnit::kRoot ? 1 : blocks);
  }
  return count;
}

std::int64_t LocalTokens(const PlannedModel& model, const MeshSizes& mesh) {
  if (mesh.cp == 1) return model.sequence;
  const std::int64_t chunks = 2 * mesh.cp;
  return 2 * ((model.sequence + chunks - 1) / chunks);
}

absl::Status CheckSplit(const PlannedModel& model, const MeshSizes& mesh, bool sequence_parallel) {
  if (mesh.pp > model.blocks) {
    return Cannot("pp", mesh.pp,
                  absl::StrCat("the model has ", model.blocks, " blocks; expected one for each stage"));
  }
  if (sequence_parallel && LocalTokens(model, mesh) % mesh.tp != 0) {
    return Cannot("tp", mesh.tp,
                  absl::StrCat("sequence parallelism of ", LocalTokens(model, mesh),
                               " tokens; expected a multiple of the ranks"));
  }
  return CheckTensor(model, mesh.tp);
}

std::vector<ParameterUnit> UnitsOnRank(const PlannedModel& model, const MeshSizes& mesh,
                                       bool sequence_parallel, int tp_rank) {
  std::vector<ParameterUnit> units = model.model->units();
  Pieces pieces;
  if (mesh.tp > 1) {
    for (const SplitGroup& group : model.model->SplitGroups(mesh.tp)) {
      for (const SplitLayer& layer : group.layers) AddPieces(layer, tp_rank, mesh.tp, pieces);
    }
  }
  for (ParameterUnit& unit : units) {
    // If the vocabulary is not split, both ends act on all rows on every rank.
    const bool all_rows = unit.block == ParameterUnit::kRoot && model.images;
    for (ParameterSpec& spec : unit.parameters) {
      if (mesh.tp > 1) Place(spec, pieces, sequence_parallel, all_rows);
    }
  }
  return units;
}

}  // namespace plait::parallel
