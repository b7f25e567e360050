#include "models/vit/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/linear/linear.h"
#include "models/vit/block.h"

namespace plait::vit {
namespace {

// (batch, channels, size, size) -> (batch patches, channels patch patch), patches row by row.
at::Tensor Patches(const at::Tensor& images, const VitOptions& o) {
  const std::int64_t side = o.image_size / o.patch_size, p = o.patch_size;
  return images.reshape({images.size(0), o.channels, side, p, side, p})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({images.size(0) * o.patches(), o.patch_dim()});
}

}  // namespace

Vit::Vit(const VitOptions& options, const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("VisionTransformer")), options_(options) {
  PLAIT_CHECK_OK(Validate(options));
  const std::int64_t dim = options.dim;
  const bool class_token = options.pool == Pool::kClassToken;
  if (class_token) {
    cls_token_ = module()->register_parameter("cls_token", at::empty({1, 1, dim}, tensor_options));
  }
  pos_embed_ =
      module()->register_parameter("pos_embed", at::empty({1, options.tokens(), dim}, tensor_options));
  const auto proj = Container(*Container(*module(), "patch_embed"), "proj");
  patch_weight_ = proj->register_parameter(
      "weight", at::empty({dim, options.channels, options.patch_size, options.patch_size}, tensor_options));
  patch_bias_ = proj->register_parameter("bias", at::empty({dim}, tensor_options));
  const auto row = Container(*module(), "blocks");
  for (std::int64_t i = 0; i < options.depth; ++i) {
    AddBlock(absl::StrCat("blocks.", i),
             std::make_shared<Block>(Container(*row, absl::StrCat(i)), options, tensor_options));
  }
  norm_ = std::make_shared<Norm>(*module(), class_token ? "norm" : "fc_norm", options, tensor_options);
  head_ = std::make_shared<Linear>(*module(), "head", dim, options.classes, true, tensor_options);
  for (std::size_t unit = 0; unit <= blocks().size(); ++unit) ResetParameters(unit);
}

models::BlockState Vit::Prologue(const models::Batch& batch, const models::BlockContext& context) {
  const at::Tensor& images = batch.inputs;
  const VitOptions& o = options_;
  PLAIT_CHECK(images.dim() == 4 && images.size(1) == o.channels && images.size(2) == o.image_size &&
              images.size(3) == o.image_size)
      << "images of shape " << images.sizes() << ", expected (batch, " << o.channels << ", " << o.image_size
      << ", " << o.image_size << ")";
  PLAIT_CHECK(context.cache == nullptr) << "a vision transformer has no cache";
  const std::int64_t count = images.size(0);
  at::Tensor x = linear::Linear(Patches(images, o), patch_weight_.view({o.dim, o.patch_dim()}), patch_bias_)
                     .view({count, o.patches(), o.dim});
  if (cls_token_.defined()) x = at::cat({cls_token_.expand({count, 1, o.dim}), x}, 1);
  x = x + pos_embed_;
  if (module()->is_training() && o.dropout > 0) x = at::dropout(x, o.dropout, true);
  return {.hidden = x};
}

at::Tensor Vit::Output(const models::BlockState& state) {
  const at::Tensor pooled = cls_token_.defined() ? state.hidden.select(1, 0) : state.hidden.mean(1);
  return head_->Forward(norm_->Forward(pooled));
}

models::LossSum Vit::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  PLAIT_CHECK(batch.targets.dim() == 1 && batch.targets.size(0) == state.hidden.size(0))
      << "targets of shape " << batch.targets.sizes() << " for hidden states of shape "
      << state.hidden.sizes();
  return models::CrossEntropySum(Output(state), batch.targets, batch.valid_targets);
}

std::vector<models::ParameterUnit> Vit::units() const {
  std::vector<models::ParameterUnit> units = ModuleModel::units();
  for (models::ParameterSpec& parameter : units[0].parameters) {
    if (parameter.name == "pos_embed" || parameter.name == "cls_token") parameter.decays = false;
  }
  return units;
}

void Vit::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit > 0) return static_cast<const Block&>(*blocks()[unit - 1]).ResetParameters();
  if (cls_token_.defined()) DrawNormal(cls_token_);
  DrawNormal(pos_embed_);
  DrawNormal(patch_weight_);
  Fill(patch_bias_, 0);
  norm_->Reset();
  head_->Reset();
}

std::int64_t ParameterCount(const VitOptions& o) {
  const std::int64_t inner = o.inner_dim(), norm = 2 * o.dim;
  const std::int64_t attention = (o.dim + (o.qkv_bias ? 1 : 0)) * 3 * inner + (inner + 1) * o.dim;
  const std::int64_t mlp = (o.dim + 1) * o.mlp_dim + (o.mlp_dim + 1) * o.dim;
  const std::int64_t embeddings =
      (o.tokens() + (o.pool == Pool::kClassToken ? 1 : 0) + o.patch_dim() + 1) * o.dim;
  return embeddings + o.depth * (2 * norm + attention + mlp) + norm + (o.dim + 1) * o.classes;
}

double FlopsPerImage(const VitOptions& o) {
  const std::int64_t n = o.tokens(), inner = o.inner_dim();
  const std::int64_t block = n * (4 * o.dim * inner + 2 * o.dim * o.mlp_dim) + 2 * n * n * inner;
  return 6.0 * static_cast<double>(o.patches() * o.patch_dim() * o.dim + o.depth * block + o.dim * o.classes);
}

}  // namespace plait::vit
