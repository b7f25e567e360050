#include "models/vit/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <torch/nn/module.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/initial_values.h"
#include "models/linear/linear.h"
#include "models/rowwise/rowwise.h"
#include "models/transformer/block.h"
#include "parallel/context/context_axis.h"
#include "parallel/tensor/collectives.h"

namespace plait::vit {

using tensor_parallel::Invariant;
using tensor_parallel::Partial;
using tensor_parallel::Residual;
using tensor_parallel::Shard;
using tensor_parallel::TensorAxis;
using transformer::Block;
using transformer::Container;

namespace {

constexpr double kInitialDeviation = 0.02;
constexpr transformer::BlockNames kNames = {"norm1", "attn", "qkv", "proj", "norm2", "mlp", "fc1", "fc2"};

transformer::BlockOptions BlockOptionsOf(const VitOptions& o) {
  return {.width = o.dim,
          .heads = o.heads,
          .head_width = o.head_dim,
          .hidden = o.mlp_dim,
          .qkv_bias = o.qkv_bias,
          .norm_eps = o.norm_eps,
          .dropout = o.dropout,
          .causal = false,
          .keeps_probabilities = o.attention == Attention::kMath,
          .deviation = kInitialDeviation,
          .out_deviation = kInitialDeviation};
}

// (batch, channels, size, size) -> (batch patches, channels patch patch), patches row by row.
at::Tensor Patches(const at::Tensor& images, const VitOptions& o) {
  const std::int64_t side = o.image_size / o.patch_size, p = o.patch_size;
  return images.reshape({images.size(0), o.channels, side, p, side, p})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({images.size(0) * o.patches(), o.patch_dim()});
}

}  // namespace

Vit::Vit(const VitOptions& options, const at::TensorOptions& tensor_options)
    : SplitModuleModel(std::make_shared<torch::nn::Module>("VisionTransformer")), options_(options) {
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
             std::make_shared<Block>(Container(*row, absl::StrCat(i)), i, BlockOptionsOf(options), kNames,
                                     tensor_options));
  }
  norm_ = std::make_shared<transformer::Norm>(*module(), class_token ? "norm" : "fc_norm", dim,
                                              /*with_bias=*/true, options.norm_eps, tensor_options);
  head_ =
      std::make_shared<transformer::Linear>(*module(), "head", dim, options.classes, true, tensor_options);
  SetUsedBy(models::UsedBy::kPrologue, {"cls_token", "pos_embed", "patch_embed"});
  SetUsedBy(models::UsedBy::kEpilogue, {"norm", "fc_norm", "head"});
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
  const models::SequencePart& sequence = batch.sequence;
  at::Tensor x = linear::Linear(Patches(images, o), patch_weight_.view({o.dim, o.patch_dim()}), patch_bias_)
                     .view({count, o.patches(), o.dim});
  if (cls_token_.defined()) x = at::cat({cls_token_.expand({count, 1, o.dim}), x}, 1);
  x = x + pos_embed_;
  if (sequence.positions.defined()) x = x.index_select(1, sequence.positions.to(x.device()));
  CheckSequence(x.size(1));
  Residual rows = ToResidual(tensor_axis(), Invariant(x.flatten(0, 1)));
  if (module()->is_training() && o.dropout > 0) {
    rows =
        transformer::DropRows(tensor_axis(), rows, count, o.dropout, batch.random, sequence, "embedding", 0);
  }
  return {.hidden = HiddenOf(rows, count)};
}

// Gathers the local tokens, (batch, local tokens, dim), on every rank of tp.
at::Tensor Vit::AllTokens(const at::Tensor& hidden, const models::SequencePart& sequence) const {
  if (!tensor_axis().sequence_parallel()) return hidden;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t tokens = sequence.positions.defined() ? sequence.positions.size(0) : options_.tokens();
  return Unslice(tensor_axis(), Shard<0>(hidden.flatten(0, 1)), batch * tokens)
      .local()
      .view({batch, tokens, options_.dim});
}

// (batch, dim): the class token, or the mean over the tokens.
at::Tensor Vit::Pooled(const at::Tensor& tokens, const models::SequencePart& sequence) const {
  const bool class_token = cls_token_.defined();
  // Of no images hidden states do not tell how many tokens a rank has (HiddenOf).
  if (sequence.axis == nullptr || tokens.size(0) == 0)
    return class_token ? tokens.select(1, 0) : tokens.mean(1);
  const context_parallel::ContextAxis& axis = *sequence.axis;
  const at::Tensor positions = axis.Positions(tokens.size(1) * axis.size()).to(tokens.device());
  const at::Tensor counted = class_token ? positions.eq(0) : positions.lt(sequence.length);
  const at::Tensor weights =
      counted.to(tokens.scalar_type()) / static_cast<double>(class_token ? 1 : sequence.length);
  const TensorAxis parts(axis.comm(), {});
  return ToReplicate(parts, AllReduce(parts, Partial(at::matmul(weights, tokens)))).local();
}

at::Tensor Vit::Logits(const at::Tensor& hidden, const models::SequencePart& sequence) const {
  const at::Tensor pooled = Pooled(AllTokens(hidden, sequence), sequence);
  return linear::Linear(norm_->Forward(pooled), head_->weight, head_->bias);
}

at::Tensor Vit::Output(const models::BlockState& state) { return Logits(state.hidden, {}); }

models::LossSum Vit::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  PLAIT_CHECK(batch.targets.dim() == 1 && batch.targets.size(0) == state.hidden.size(0))
      << "targets of shape " << batch.targets.sizes() << " for hidden states of shape "
      << state.hidden.sizes();
  const at::Tensor logits = Logits(state.hidden, batch.sequence);
  // Every rank of cp has the same logits.
  const bool counts = batch.sequence.axis == nullptr || batch.sequence.axis->rank() == 0;
  if (counts) return models::CrossEntropySum(logits, batch.targets, batch.valid_targets);
  return models::CrossEntropySum(logits, at::full_like(batch.targets, -1), /*valid_targets=*/0);
}

std::vector<models::ParameterUnit> Vit::units() const {
  std::vector<models::ParameterUnit> units = SplitModuleModel::units();
  for (models::ParameterSpec& parameter : units[0].parameters) {
    if (parameter.name == "pos_embed" || parameter.name == "cls_token") parameter.decays = false;
  }
  return units;
}

// Prologue and epilogue are replicated: they process all tokens on every rank.
void Vit::UseTensorAxis(const tensor_parallel::TensorAxis& axis) {
  SplitModuleModel::UseTensorAxis(axis);
  const std::vector<models::ParameterUnit> all = units();  // a temporary would end before the loop
  for (const models::ParameterSpec& parameter : all[0].parameters) {
    SetPlacement(parameter.tensor, {.replicated = {axis.comm().name()}});
  }
}

std::vector<tensor_parallel::SplitGroup> Vit::SplitGroups(int /*ranks*/) {
  std::vector<tensor_parallel::SplitGroup> groups;
  for (std::size_t i = 0; i < blocks().size(); ++i) {
    for (tensor_parallel::SplitGroup& group :
         static_cast<Block&>(*blocks()[i]).SplitGroups(absl::StrCat("blocks.", i))) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

void Vit::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit > 0) return static_cast<const Block&>(*blocks()[unit - 1]).ResetParameters(*this);
  models::DrawNormal(cls_token_, {}, kInitialDeviation);
  models::DrawNormal(pos_embed_, {}, kInitialDeviation);
  models::DrawNormal(patch_weight_, {}, kInitialDeviation);
  models::Fill(patch_bias_, 0);
  norm_->Reset();
  head_->Reset(*this, kInitialDeviation);
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
