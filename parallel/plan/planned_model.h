// A transformer for planning: its parameters on any rank of a mesh, and the sizes that determine FLOPs and messages.
//
//   options.n_layers = 1;                      // all blocks are equal: one is enough
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

// Ranks along each axis, outermost first: neighbours along tp are neighbours on a node.
struct MeshSizes {
  int pp = 1, dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1;

  int ranks() const { return pp * dp_replicate * dp_shard * cp * tp; }
  int data_ranks() const { return dp_replicate * dp_shard; }
  friend auto operator<=>(const MeshSizes&, const MeshSizes&) = default;
};
// "pp=2,dp_shard=4", without axes of one rank; "1 rank" if all have one.
std::string ToText(const MeshSizes& mesh);

// A stack of equal blocks: attention and a feed-forward network, acting on hidden states (samples * sequence, width).
struct PlannedModel {
  std::string name;
  // The unsplit model with one block, on the meta device, in the masters' type.
  std::shared_ptr<tensor_parallel::SplittableModel> model;
  std::int64_t blocks = 0, sequence = 0, width = 0;
  std::int64_t heads = 0, key_heads = 0, head_width = 0;
  // True: embedding and head are replicated along tp, and tokens are pooled over cp. False (text): tp splits both by
  // the vocabulary.
  bool images = false;
  // FLOPs of matrix products per sample, forward and backward.
  double block_flops = 0, prologue_flops = 0, epilogue_flops = 0;
  // On the meta device: makes another model with parameters of `type`, and a micro-batch of `samples` samples for it.
  std::function<std::shared_ptr<models::BlockModel>(at::ScalarType type)> make = {};
  std::function<models::Batch(std::int64_t samples, at::ScalarType type)> batch = {};

  std::int64_t ParameterCount() const;
};

// Tokens of a sequence on a rank along cp, padded to two equal chunks per rank (also for Ulysses, which needs less).
std::int64_t LocalTokens(const PlannedModel& model, const MeshSizes& mesh);

// INVALID_ARGUMENT, one line, if the mesh cannot split the model: heads are not a multiple of tp, a width or vocabulary
// is smaller than tp, local tokens are not a multiple of tp (sequence parallelism), or pp exceeds the blocks.
absl::Status CheckSplit(const PlannedModel& model, const MeshSizes& mesh, bool sequence_parallel);

// The root units and one block's, as tensor_parallel::Parallelize leaves them on a rank. Tensors are meta tensors.
std::vector<models::ParameterUnit> UnitsOnRank(const PlannedModel& model, const MeshSizes& mesh,
                                               bool sequence_parallel, int tp_rank);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_PLANNED_MODEL_H_
