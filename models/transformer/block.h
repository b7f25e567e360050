// The pre-norm transformer block (Radford et al., 2019; Dosovitskiy et al., arXiv:2010.11929):
//
//   y = x + dt dropout(out(attention(qkv(norm_1(x))))),    y + dt dropout(mlp_out(gelu(mlp_in(norm_2(y)))))
//
// or with a mixture of experts (models/moe) in place of the MLP. GPT and ViT differ in sizes, in whether attention is
// causal, and in the names of the state dict. Its layers can be split over the tensor axis (parallel/tensor),
// attention by heads.
#ifndef PLAIT_MODELS_TRANSFORMER_BLOCK_H_
#define PLAIT_MODELS_TRANSFORMER_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "models/block_model.h"
#include "models/moe/moe_mlp.h"
#include "models/moe/options.h"
#include "models/rowwise/rowwise.h"
#include "models/stackable_block.h"
#include "models/transformer/layers.h"
#include "parallel/dropout/dropout.h"
#include "parallel/tensor/parallelize.h"

namespace plait::transformer {

// State-dict names of the submodules.
struct BlockNames {
  const char *norm_1, *attention, *qkv, *attention_out, *norm_2, *mlp, *mlp_in, *mlp_out;
};

struct BlockOptions {
  std::int64_t width = 0;
  std::int64_t heads = 1, head_width = 1;  // heads * head_width may differ from width
  std::int64_t hidden = 0;                 // of the MLP
  bool qkv_bias = true, bias = true;       // bias: of norms and all other linear layers
  double norm_eps = 1e-5;
  rowwise::GeluKind gelu = rowwise::GeluKind::kExact;
  double dropout = 0;  // in [0, 1)
  bool causal = true;
  moe::MoeOptions moe = {};          // in place of the MLP, if moe.used()
  bool keeps_probabilities = false;  // models/attention/attention.h
  std::int64_t capacity = 0;         // maximum positions of a key-value cache
  // Standard deviations of initial weights; `out_deviation`: of the two that add to the residual stream.
  double deviation = 0.02, out_deviation = 0.02;
};

class Block final : public models::Block, public models::StackableBlock {
 public:
  // Registers its parameters with `module`, whose training mode enables dropout. `layer`: its index.
  Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const BlockOptions& options,
        const BlockNames& names, const at::TensorOptions& tensor_options);

  // Hidden states (batch, seq, width). With a cache they continue the positions that it holds, and their keys and
  // values are appended to its layer context.step.
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override;
  // For blocks with equal options, without experts, active dropout, tensor parallelism, caches and context parallelism.
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override;
  std::vector<at::Tensor> Parameters() const override;
  void ResetParameters(const models::ModuleModel& model) const;
  // `name`: the block's prefix in the state dict, "transformer.h.0".
  std::vector<tensor_parallel::SplitGroup> SplitGroups(const std::string& name);
  // Null without experts. The experts' parameters are a unit of their own, with the prefix PREFIX.experts_name().
  moe::MoeMlp* moe() const { return moe_.get(); }
  std::string experts_name() const { return std::string(names_.mlp) + ".experts"; }
  void ResetExperts(const models::ModuleModel& model) const;

 private:
  tensor_parallel::Shard<1> Attention(const tensor_parallel::Residual& rows, std::int64_t batch,
                                      const models::BlockContext& context) const;
  // Queries, keys and values side by side, (batch seq, 3 heads width) -> (batch seq, heads width).
  at::Tensor Attend(const at::Tensor& product, std::int64_t batch, const models::BlockContext& context) const;
  bool CanBeStackedWith(const Block& other, const models::BlockContext& context) const;
  // residual + dt dropout(added).
  tensor_parallel::Residual AddDropped(const tensor_parallel::TensorAxis& axis,
                                       const tensor_parallel::Residual& residual,
                                       tensor_parallel::Residual added, const char* site,
                                       const models::BlockContext& context, std::int64_t batch) const;
  // residual + dt dropout(projection(rows)).
  tensor_parallel::Residual AddProjected(const tensor_parallel::TensorAxis& axis,
                                         const tensor_parallel::Residual& residual,
                                         const tensor_parallel::Shard<1>& rows, const Linear& projection,
                                         const models::BlockContext& context, std::int64_t batch) const;

  bool dropping() const;
  // For the attention probabilities of this rank's heads.
  dropout::ProbabilityDropout ProbabilityDropoutOf(const models::RandomContext& random) const;

  std::int64_t layer_;
  BlockOptions options_;
  BlockNames names_;
  tensor_parallel::TensorAxis attention_axis_, mlp_axis_;
  // Below `module_`; parameters in the order of the state dict.
  std::shared_ptr<torch::nn::Module> module_;
  Norm norm_1_;
  std::shared_ptr<torch::nn::Module> attention_;
  Linear qkv_, attention_out_;
  Norm norm_2_;
  std::unique_ptr<moe::MoeMlp> moe_;  // or the layers below
  std::shared_ptr<torch::nn::Module> mlp_;
  std::optional<Linear> mlp_in_, mlp_out_;
};

}  // namespace plait::transformer

#endif  // PLAIT_MODELS_TRANSFORMER_BLOCK_H_
