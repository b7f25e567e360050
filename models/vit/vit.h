// A vision transformer: patches of an image as tokens, pre-norm blocks, full attention.
//
//   plait::vit::Vit vit({.image_size = 32, .patch_size = 4, .dim = 128, .depth = 4, .heads = 4,
//                        .head_dim = 32, .mlp_dim = 512, .classes = 10}, at::kFloat);
//   models::LossSum loss = models::RunModel(vit, {.inputs = images, .targets = labels});
//   loss.sum.div(loss.count).backward();      // (batch, channels, size, size), (batch) int64
//   vit.SetTraining(false);
//   at::Tensor logits = vit.Forward(images);  // (batch, classes)
//
//   (batch, channels, size, size)  images
//     patches, linear, + pos_embed (batch, tokens, dim), preceded by cls_token if there is one; dropout
//     depth blocks:                x + proj(attention(qkv(norm1(x))))
//                                  x + fc2(gelu(fc1(norm2(x))))     mlp_dim wide
//     mean over patches, fc_norm   (batch, dim); with a class token: that token, norm
//     head                         (batch, classes)
//
// Dosovitskiy et al., arXiv:2010.11929, equations 1 to 4. Hidden states have the parameters' dtype: float32,
// float64, bfloat16. State dict, in timm's order and names: [cls_token (1, 1, dim),] pos_embed (1, tokens,
// dim), patch_embed.proj.weight (dim, channels, patch, patch), .bias, blocks.0.norm1.weight, .bias,
// .attn.qkv.weight (3 heads head_dim, dim), [.bias,] .attn.proj.weight, .bias, .norm2..., .mlp.fc1..., .mlp.fc2...,
// fc_norm (or norm).weight, .bias, head.weight, .bias. Weights of linear layers are (out, in).
//
// The loss is the cross entropy of the classes; negative targets are ignored. With step size dt a block computes
// y = x + dt attention(x), then y + dt mlp(y). A batch may be empty. The root unit holds embeddings, norm and head.
// Initial weights are normal with standard deviation 0.02, biases 0. Position embeddings and class token are
// exempt from weight decay. Local, unless layers or sequences are split.
#ifndef PLAIT_MODELS_VIT_VIT_H_
#define PLAIT_MODELS_VIT_VIT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/split_module_model.h"
#include "models/vit/options.h"

namespace plait::transformer {
struct Linear;
struct Norm;
}  // namespace plait::transformer

namespace plait::vit {

class Vit final : public models::SplitModuleModel {
 public:
  // Starts in training mode. On the meta device nothing is allocated or drawn. Aborts if Validate(options) fails.
  Vit(const VitOptions& options, const at::TensorOptions& tensor_options);

  // Under context parallelism (Batch::sequence) a rank embeds only its tokens; Epilogue is collective over the axis,
  // whose first rank returns the loss, the others zero. Output() expects all tokens.
  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  std::vector<models::ParameterUnit> units() const override;
  void ResetParameters(std::size_t unit) override;
  // In the format in which PyTorch prints timm's model.
  std::string Description() const override;
  // Splits attention by heads, the MLP by its hidden width.
  std::vector<tensor_parallel::SplitGroup> SplitGroups(int ranks) override;
  void UseTensorAxis(const tensor_parallel::TensorAxis& axis) override;

  const VitOptions& options() const { return options_; }

 private:
  at::Tensor AllTokens(const at::Tensor& hidden, const models::SequencePart& sequence) const;
  at::Tensor Pooled(const at::Tensor& tokens, const models::SequencePart& sequence) const;
  at::Tensor Logits(const at::Tensor& hidden, const models::SequencePart& sequence) const;

  VitOptions options_;
  at::Tensor cls_token_, pos_embed_;  // cls_token_: undefined without a class token
  at::Tensor patch_weight_, patch_bias_;
  std::shared_ptr<const transformer::Norm> norm_;
  std::shared_ptr<const transformer::Linear> head_;
};

// Number of parameters, without building a model.
std::int64_t ParameterCount(const VitOptions& options);

// FLOPs per image of a training step, forward and backward: six per mult-add of the matrix products in linear layers
// and attention.
double FlopsPerImage(const VitOptions& options);

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_VIT_H_
