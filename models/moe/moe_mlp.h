// A mixture of experts as a part of a block: a router, experts spread over ranks, perhaps an expert that all tokens share.
//
//   MoeMlp moe(module, "mlp", width, options, tensor_options);
//   const MoeMlp::Output out = moe.Forward(normalized_rows, call);         // out.added: to the residual stream
//
// Parameters below `name`, with all experts of a layer in one tensor whose first dimension is the expert:
//   router.weight (experts, width), router.noise_weight, a buffer router.bias (experts) of the bias gate
//   experts.in_weight (experts, hidden, width), .in_bias (experts, hidden), .gate_weight, .gate_bias,
//   experts.out_weight (experts, width, hidden), .out_bias (experts, width)
//   shared.in.weight, shared.out.weight, ...
// so that checkpoints know logical experts, whatever ranks have them. After Distribute (distribute.h) a rank has its home experts, and
// of them its part of `hidden` along tp.
//
// The router computes in float32, or float64 where the model does. Under sequence parallelism it sees all rows. Losses and loads are
// those of the whole batch; loads are counted in training, in final calls only (models::BlockContext).
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

// Of a step, or of what of it has been so far; the same on all ranks of the batch.
struct LayerLoad {
  std::vector<std::int64_t> rows_of_expert;  // chosen by the tokens of all ranks, before capacity
  std::vector<std::int64_t> rows_of_rank;    // computed, of this rank's expert-parallel group
  std::int64_t tokens = 0, dropped = 0, not_finite = 0, replicas = 0;
};

// The ranks of a layer.
struct MoeRanks {
  TokenRanks tokens = {};
  ExchangeRanks experts = {};
  tensor_parallel::TensorAxis tensor = {};
};

class MoeMlp {
 public:
  // Its parameters belong to a new module `name` of `parent`, whose mode says whether gates are in training.
  MoeMlp(torch::nn::Module& parent, const std::string& name, std::int64_t layer, std::int64_t width,
         const MoeOptions& options, const at::TensorOptions& tensor_options);

  struct Call {
    std::int64_t batch = 0;  // samples
    const models::BlockContext& context;
  };
  struct Output {
    tensor_parallel::Residual added;
    at::Tensor loss;  // scalar: a sum over this rank's tokens (gate.h); 0 where there is none
  };
  Output Forward(const tensor_parallel::Residual& rows, const Call& call);

  // After a step: biases move, and the load of the step can be read.
  void EndStep();
  const LayerLoad& load() const { return load_of_step_; }
  const LayerLoad& load_so_far() const { return load_; }  // since EndStep
  std::int64_t layer() const { return layer_; }

  // Values as one process draws them, an expert at a time. `out_deviation`: of what adds to the residual stream. Router and shared
  // expert belong to the block's unit, experts to one of their own.
  void ResetBlock(const models::ModuleModel& model, double deviation, double out_deviation) const;
  void ResetExperts(const models::ModuleModel& model, double deviation, double out_deviation) const;
  // Of biases, which do not decay though they are matrices.
  std::vector<at::Tensor> NeverDecay() const;

  // The shared expert's layers, for parallel/tensor.
  std::vector<tensor_parallel::SplitGroup> SplitGroups(const std::string& name);

  // For Distribute.
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

  std::int64_t layer_, width_;
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
