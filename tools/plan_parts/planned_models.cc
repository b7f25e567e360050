#include "tools/plan_parts/planned_models.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <variant>

#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/vit/vit.h"
#include "tools/vit_training/vit_task.h"

namespace plait::planning {
namespace {

using parallel::PlannedModel;

// Without experts: estimates do not cover them.
gpt::GptOptions WithBlocks(gpt::GptOptions o, std::int64_t blocks) {
  o.n_layer = blocks;
  o.moe = {};
  o.moe_every = 1;
  return o;
}
llama::LlamaOptions WithBlocks(llama::LlamaOptions o, std::int64_t blocks) {
  o.n_layers = blocks;
  return o;
}
vit::VitOptions WithBlocks(vit::VitOptions o, std::int64_t blocks) {
  o.depth = blocks;
  return o;
}

// Vocabulary of models for timing blocks.
constexpr std::int64_t kFewTokens = 64;

at::TensorOptions Meta(at::ScalarType type) { return at::TensorOptions(at::kMeta).dtype(type); }

// Makes models with one block, on the meta device.
template <typename Model, typename Options>
std::function<std::shared_ptr<models::BlockModel>(at::ScalarType type)> MakerOf(const Options& o) {
  return [one = WithBlocks(o, 1)](at::ScalarType type) { return std::make_shared<Model>(one, Meta(type)); };
}

PlannedModel ShapeOf(const gpt::GptOptions& o, at::ScalarType master) {
  return {.name = "gpt",
          .model = std::make_shared<gpt::Gpt>(WithBlocks(o, 1), Meta(master)),
          .blocks = o.n_layer,
          .width = o.n_embd,
          .heads = o.n_head,
          .key_heads = o.n_head,
          .head_width = o.n_embd / o.n_head,
          .make = MakerOf<gpt::Gpt>(o)};
}

PlannedModel ShapeOf(const llama::LlamaOptions& o, at::ScalarType master) {
  return {.name = "llama",
          .model = std::make_shared<llama::Llama>(WithBlocks(o, 1), Meta(master)),
          .blocks = o.n_layers,
          .width = o.dim,
          .heads = o.n_heads,
          .key_heads = o.n_kv_heads,
          .head_width = o.dim / o.n_heads,
          .make = MakerOf<llama::Llama>(o)};
}

}  // namespace

PlannedModel Planned(const text_training::ModelOptions& options, std::int64_t sequence,
                     at::ScalarType master) {
  PlannedModel model = std::visit([&](const auto& o) { return ShapeOf(o, master); }, options);
  model.sequence = sequence;
  const double tokens = static_cast<double>(sequence), blocks = static_cast<double>(model.blocks);
  model.epilogue_flops = 6 * tokens * static_cast<double>(text_training::VocabularyOf(options) * model.width);
  model.block_flops =
      (text_training::FlopsPerToken(options, sequence) * tokens - model.epilogue_flops) / blocks;
  model.batch = [sequence](std::int64_t samples, at::ScalarType) {
    const auto tokens = [&] { return at::empty({samples, sequence}, Meta(at::kLong)); };
    return models::Batch{tokens(), tokens()};
  };
  return model;
}

PlannedModel Planned(const vit::VitOptions& o, at::ScalarType master) {
  PlannedModel model = {.name = "vit",
                        .model = std::make_shared<vit::Vit>(WithBlocks(o, 1), Meta(master)),
                        .blocks = o.depth,
                        .sequence = o.tokens(),
                        .width = o.dim,
                        .heads = o.heads,
                        .key_heads = o.heads,
                        .head_width = o.head_dim,
                        .images = true,
                        .make = MakerOf<vit::Vit>(o)};
  model.batch = [o](std::int64_t samples, at::ScalarType type) {
    return models::Batch{at::empty({samples, o.channels, o.image_size, o.image_size}, Meta(type)),
                         at::empty({samples}, Meta(at::kLong))};
  };
  model.prologue_flops = 6.0 * static_cast<double>(o.patches() * o.patch_dim() * o.dim);
  model.epilogue_flops = 6.0 * static_cast<double>(o.dim * o.classes);
  model.block_flops =
      (vit::FlopsPerImage(o) - model.prologue_flops - model.epilogue_flops) / static_cast<double>(o.depth);
  return model;
}

std::unique_ptr<models::BlockModel> Made(const text_training::ModelOptions& options, std::int64_t blocks,
                                         at::ScalarType type) {
  return std::visit(
      [&](auto o) {
        o.vocab_size = kFewTokens;
        return text_training::MakeModel(WithBlocks(o, blocks), type);
      },
      options);
}

std::unique_ptr<models::BlockModel> Made(const vit::VitOptions& options, std::int64_t blocks,
                                         at::ScalarType type) {
  return std::make_unique<vit::Vit>(WithBlocks(options, blocks), type);
}

models::Batch Batch(std::int64_t samples, std::int64_t sequence) {
  const at::Tensor text = at::randint(kFewTokens, {samples, sequence + 1}, at::kLong);
  return {text.narrow(1, 0, sequence).contiguous(), text.narrow(1, 1, sequence).contiguous()};
}

models::Batch Batch(const vit::VitOptions& o, std::int64_t samples, at::ScalarType type) {
  return {at::randn({samples, o.channels, o.image_size, o.image_size}, type),
          at::randint(o.classes, {samples}, at::kLong)};
}

}  // namespace plait::planning
