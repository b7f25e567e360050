// A mixture of experts as part of a block: a router, experts distributed over ranks, optionally a shared expert.
//
//   MoeMlp moe(module, "mlp", layer, width, options, tensor_options);
//   const MoeMlp::Output out = moe.Forward(normalized_rows, {batch, context});  // residual stream += out.added
//
// Parameters below `name`, with all experts of a layer in one tensor whose first dimension is the expert:
//   router.weight (experts, width), router.noise_weight, a buffer router.bias (experts) of the bias gate
//   experts.in_weight (experts, hidden, width), .in_bias (experts, hidden), .gate_weight, .gate_bias,
//   experts.out_weight (experts, width, hidden), .out_bias (experts, width)
//   shared.in.weight, shared.out.weight, ...
// so that checkpoints store logical experts, independent of the mesh. After DistributeExperts (distribute.h) a rank
// holds its home experts, and of each its part of `hidden` along tp.
//
// The router computes in float32, for float64 models in float64. Under sequence parallelism it sees all rows. Losses
// and loads are those of the global batch; loads are counted in training, in final calls only
// (models::BlockContext). Forward is collective over the layer's ranks; everything else is local.
#ifndef PLAIT_MODELS_MOE_MOE_MLP_H_
#define PLAIT_MODELS_MOE_MOE_MLP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/block_model.h"
#include "models/module_model.h"
#include "models/moe/options.h"
#include "models/transformer/layers.h"
#include "parallel/moe/layer.h"
#include "parallel/moe/placement.h"
#include "parallel/moe/router.h"
#include "parallel/tensor/parallelize.h"
#include "parallel/tensor/values.h"

namespace plait::moe {

// Load statistics of a step, or of its micro-batches so far. The same on all ranks, but for `rows_of_rank` and
// `replicas`, which are those of this rank's expert-parallel group.
struct LayerLoad {
  std::vector<std::int64_t> rows_of_expert;  // rows routed to each expert by all ranks, before capacity drops
  std::vector<std::int64_t> rows_of_rank;    // rows that each rank of the expert-parallel group computes
  std::int64_t tokens = 0, dropped = 0, not_finite = 0, replicas = 0;
};

// Local. Tokens of this rank's part of `batch`, without context parallelism's padding.
std::int64_t CountTokens(const models::Batch& batch);

// The ranks that share a layer, by role.
struct MoeRanks {
  TokenRanks tokens = {};
  ExchangeRanks experts = {};
  tensor_parallel::TensorAxis tensor = {};
};

class MoeMlp {
 public:
  // Registers its parameters with a new submodule `name` of `parent`, whose training mode is that of the gates.
  // `layer`: its index, from which the router's random seed is derived.
  MoeMlp(torch::nn::Module& parent, const std::string& name, std::int64_t layer, std::int64_t width,
         const MoeOptions& options, const at::TensorOptions& tensor_options);

  struct Call {
    std::int64_t batch = 0;  // samples
    const models::BlockContext& context;
  };
  struct Output {
    tensor_parallel::Residual added;
    at::Tensor loss;  // scalar, weighted balance losses summed over this rank's tokens (parallel/moe/gate.h)
  };
  Output Forward(const tensor_parallel::Residual& rows, const Call& call);

  // Collective over the ranks of tokens. `valid` targets of this rank's part of a batch and its tokens, both summed over
  // the ranks: valid targets per token.
  double ValidPerToken(const models::Batch& batch, std::int64_t valid) const;

  // Call it after each optimizer step: updates the biases of the bias gate, unless the step was skipped (`updated`), and
  // makes load() that of the step.
  void EndStep(bool updated);
  const LayerLoad& load() const { return load_of_step_; }
  const LayerLoad& load_so_far() const { return load_; }  // since the last EndStep()
  std::int64_t layer() const { return layer_; }

  // Draw initial values, one expert at a time, as one process would. `deviation`, `out_deviation`: standard deviations
  // of weights, and of those that add to the residual stream. ResetBlock draws router and shared expert, which belong
  // to the block's unit; ResetExperts draws the experts, a unit of their own.
  void ResetBlock(const models::ModuleModel& model, double deviation, double out_deviation) const;
  void ResetExperts(const models::ModuleModel& model, double deviation, double out_deviation) const;
  // The experts' biases, which are exempt from weight decay although they are matrices.
  std::vector<at::Tensor> NeverDecay() const;

  // The shared expert's layers, for parallel/tensor. `name`: prefix in the state dict.
  std::vector<tensor_parallel::SplitGroup> SplitGroups(const std::string& name);

  // For DistributeExperts, after it has cut the experts: options().planner.cost is then that of this rank's part.
  void UseRanks(const MoeRanks& ranks);
  const ExpertWeights& experts() const { return experts_; }
  std::vector<at::Tensor> router_parameters() const;
  const MoeOptions& options() const { return options_; }

 private:
  at::Tensor ThroughExperts(const at::Tensor& x, const Call& call, const at::Tensor& token_indices,
                            at::Tensor& loss);
  ExpertPlacement PlacementFor(const Census& census, bool planning);
  void Count(const RoutedTokens& routed, const ExpertPlacement& placement);
  bool training() const;

  std::int64_t layer_;
  MoeOptions options_;
  std::shared_ptr<torch::nn::Module> module_;
  at::Tensor router_, noise_, bias_;
  ExpertWeights experts_;
  std::optional<transformer::Linear> shared_in_, shared_out_;
  tensor_parallel::TensorAxis shared_axis_;
  MoeRanks ranks_;
  std::optional<ExpertLayer> layer_of_ranks_;
  LayerLoad load_, load_of_step_;
};

}  // namespace plait::moe

#endif  // PLAIT_MODELS_MOE_MOE_MLP_H_
