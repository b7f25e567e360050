// A vision transformer: patches of an image as tokens, blocks with the norm in front, full attention.
//
//   plait::vit::Vit vit({.image_size = 32, .patch_size = 4, .dim = 128, .depth = 4, .heads = 4,
//                        .head_dim = 32, .mlp_dim = 512, .classes = 10}, at::kFloat);
//   models::LossSum loss = models::RunModel(vit, {.inputs = images, .targets = labels});
//   loss.sum.div(loss.count).backward();      // (batch, channels, size, size), (batch) int64
//   vit.SetTraining(false);
//   at::Tensor logits = vit.Forward(images);  // (batch, classes)
//
//   (batch, channels, size, size)  images
//     patches, linear, + pos_embed (batch, tokens, dim), behind cls_token where there is one; dropout
//     depth blocks:                x + proj(attention(qkv(norm1(x))))
//                                  x + fc2(gelu(fc1(norm2(x))))     mlp_dim wide
//     mean over patches, fc_norm   (batch, dim); with a class token: norm, of that token
//     head                         (batch, classes)
//
// Dosovitskiy et al., arXiv:2010.11929, equations 1 to 4. Hidden states have the parameters' type: float32,
// float64, bfloat16. State dict, in timm's order and names: [cls_token (1, 1, dim),] pos_embed (1, tokens,
// dim), patch_embed.proj.weight (dim, channels, patch, patch), .bias, blocks.0.norm1.weight, .bias,
// .attn.qkv.weight (3 heads head_dim, dim), [.bias,] .attn.proj.weight, .bias, .norm2..., .mlp.fc1..., .mlp.fc2...,
// fc_norm (or norm).weight, .bias, head.weight, .bias. Weights of linear layers are (out, in).
//
// The loss is the cross entropy of the classes; negative targets are ignored. A block with step size dt is
// x + dt attention(x), then that + dt mlp(that). A batch may be empty. The root unit holds embeddings, norm
// and head. Initial weights are normal of deviation 0.02, biases 0. Weight decay acts neither on positions
// nor on the class token. Local.
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
  // Begins in training mode. On the meta device no memory is allocated and nothing is drawn. Options that
  // Validate() refuses are a programming error.
  Vit(const VitOptions& options, const at::TensorOptions& tensor_options);

  // Of images with Batch::sequence a rank embeds its tokens, and the loss is that of the first rank of the axis, the
  // others' is zero; Output is of all tokens.
  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  std::vector<models::ParameterUnit> units() const override;
  void ResetParameters(std::size_t unit) override;
  // As PyTorch prints timm's.
  std::string Description() const override;
  // Attention with its heads, mlp by its width.
  std::vector<tensor_parallel::SplitGroup> SplitGroups(int ranks) override;
  void UseTensorAxis(const tensor_parallel::TensorAxis& axis) override;

  const VitOptions& options() const { return options_; }

 private:
  at::Tensor AllTokens(const at::Tensor& hidden, const models::SequencePart& sequence) const;
  at::Tensor Pooled(const at::Tensor& tokens, const models::SequencePart& sequence) const;
  at::Tensor Logits(const at::Tensor& hidden, const models::SequencePart& sequence) const;

  VitOptions options_;
  at::Tensor cls_token_, pos_embed_;  // the first undefined where there is none
  at::Tensor patch_weight_, patch_bias_;
  std::shared_ptr<const transformer::Norm> norm_;
  std::shared_ptr<const transformer::Linear> head_;
};

// Parameters by the formula, without a model.
std::int64_t ParameterCount(const VitOptions& options);

// Floating point operations of one image's step, forward and backward: six per mult-add of the products of
// linear layers and attention.
double FlopsPerImage(const VitOptions& options);

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_VIT_H_
