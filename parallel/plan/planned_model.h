// A transformer as plans see it: its parameters on any rank of a mesh, and what its work and its messages follow from.
//
//   options.n_layers = 1;                      // blocks are equal: one tells all
//   PlannedModel model = {.model = std::make_shared<llama::Llama>(options, at::TensorOptions(at::kMeta)),
//                         .blocks = 80, .sequence = 4096, .width = 8192, ...};
//   PLAIT_RETURN_IF_ERROR(CheckSplit(model, {.tp = 8}, /*sequence_parallel=*/true));
//   const std::vector<models::ParameterUnit> units = UnitsOnRank(model, {.tp = 8}, /*sequence_parallel=*/true, 0);
//
// Local.
#ifndef PLAIT_PARALLEL_PLAN_PLANNED_MODEL_H_
#define PLAIT_PARALLEL_PLAN_PLANNED_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/block_model.h"
#include "parallel/tensor/parallelize.h"

namespace plait::parallel {

// Ranks along each axis, in the order of a mesh: neighbours along tp are neighbours on a node.
struct MeshSizes {
  int pp = 1, dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1;

  int ranks() const { return pp * dp_replicate * dp_shard * cp * tp; }
  int data_ranks() const { return dp_replicate * dp_shard; }
  friend auto operator<=>(const MeshSizes&, const MeshSizes&) = default;
};
// "pp=2,dp_shard=4", axes of one rank left out; "1 rank".
std::string ToText(const MeshSizes& mesh);

// A row of equal blocks: attention and a feed-forward network, whose norms, products and sums act on the rows
// (samples x sequence) of width `width`.
struct PlannedModel {
  std::string name;
  // With one block, on the meta device, in the masters' type, whole.
  std::shared_ptr<tensor_parallel::SplittableModel> model;
  std::int64_t blocks = 0, sequence = 0, width = 0;
  std::int64_t heads = 0, key_heads = 0, head_width = 0;
  // Embedding and head act on all columns on every rank of tp, and tokens are pooled over cp. Text: tp splits them by
  // the vocabulary.
  bool images = false;
  // Of a sample's step: floating point operations of products, forward and backward.
  double block_flops = 0, prologue_flops = 0, epilogue_flops = 0;
  // On the meta device: another model, of this type, and a micro-batch of so many samples for it.
  std::function<std::shared_ptr<models::BlockModel>(at::ScalarType type)> make = {};
  std::function<models::Batch(std::int64_t samples, at::ScalarType type)> batch = {};

  std::int64_t ParameterCount() const;
};

// Of a sequence on a rank along cp, with padding to two chunks for each rank (what Ulysses needs less is not counted).
std::int64_t LocalTokens(const PlannedModel& model, const MeshSizes& mesh);

// InvalidArgument, one line, where the mesh cannot split the model: heads, widths, vocabulary or sequence too few or
// no multiples, more stages than blocks, an axis that the program lacks.
absl::Status CheckSplit(const PlannedModel& model, const MeshSizes& mesh, bool sequence_parallel);

// The root units and a block's as tensor_parallel::Parallelize leaves them on a rank. Tensors are on the meta device.
std::vector<models::ParameterUnit> UnitsOnRank(const PlannedModel& model, const MeshSizes& mesh,
                                               bool sequence_parallel, int tp_rank);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_PLANNED_MODEL_H_
