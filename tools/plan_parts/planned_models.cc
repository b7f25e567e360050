#include "tools/plan_parts/planned_models.h"

#include <memory>
#include <variant>

#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/vit/vit.h"
#include "tools/vit_training/vit_task.h"

namespace plait::planning {
namespace {

using parallel::PlannedModel;

// Rows of the residual stream that a block keeps: the results of both norms and both sums.
constexpr std::int64_t kResidualRows = 4;

at::TensorOptions Meta(at::ScalarType type) { return at::TensorOptions(at::kMeta).dtype(type); }

PlannedModel ShapeOf(const gpt::GptOptions& o, at::ScalarType master) {
  gpt::GptOptions one = o;
  one.n_layer = 1;
  return {.name = "gpt",
          .model = std::make_shared<gpt::Gpt>(one, Meta(master)),
          .blocks = o.n_layer,
          .width = o.n_embd,
          .heads = o.n_head,
          .key_heads = o.n_head,
          .head_width = o.n_embd / o.n_head};
}

PlannedModel ShapeOf(const llama::LlamaOptions& o, at::ScalarType master) {
  llama::LlamaOptions one = o;
  one.n_layers = 1;
  return {.name = "llama",
          .model = std::make_shared<llama::Llama>(one, Meta(master)),
          .blocks = o.n_layers,
          .width = o.dim,
          .heads = o.n_heads,
          .key_heads = o.n_kv_heads,
          .head_width = o.dim / o.n_heads};
}

}  // namespace

PlannedModel Planned(const text_training::ModelOptions& options, std::int64_t sequence, at::ScalarType master) {
  PlannedModel model = std::visit([&](const auto& o) { return ShapeOf(o, master); }, options);
  model.sequence = sequence;
  const double tokens = static_cast<double>(sequence), blocks = static_cast<double>(model.blocks);
  model.epilogue_flops = 6 * tokens * static_cast<double>(text_training::VocabularyOf(options) * model.width);
  model.block_flops = (text_training::FlopsPerToken(options, sequence) * tokens - model.epilogue_flops) / blocks;
  model.end_activations = text_training::EndBytesPerSample(options, sequence, /*element_bytes=*/1);
  const std::int64_t all = text_training::ActivationBytesPerSample(options, sequence, 1, /*checkpointed_blocks=*/0);
  model.block_activations = (all - model.end_activations) / model.blocks;
  model.residual_activations = kResidualRows * sequence * model.width;
  return model;
}

PlannedModel Planned(const vit::VitOptions& o, at::ScalarType master) {
  vit::VitOptions one = o;
  one.depth = 1;
  PlannedModel model = {.name = "vit",
                        .model = std::make_shared<vit::Vit>(one, Meta(master)),
                        .blocks = o.depth,
                        .sequence = o.tokens(),
                        .width = o.dim,
                        .heads = o.heads,
                        .key_heads = o.heads,
                        .head_width = o.head_dim,
                        .splits_vocabulary = false,
                        .can_pipeline = false,
                        .can_split_sequences = false};
  model.prologue_flops = 6.0 * static_cast<double>(o.patches() * o.patch_dim() * o.dim);
  model.epilogue_flops = 6.0 * static_cast<double>(o.dim * o.classes);
  model.block_flops =
      (vit::FlopsPerImage(o) - model.prologue_flops - model.epilogue_flops) / static_cast<double>(o.depth);
  model.end_activations = 2 * (o.tokens() * o.dim + o.channels * o.image_size * o.image_size);
  const std::int64_t all = vit_training::ActivationBytesPerImage(o, /*element_bytes=*/1, 0);
  model.block_activations = (all - model.end_activations) / o.depth;
  model.residual_activations = kResidualRows * o.tokens() * o.dim;
  return model;
}

}  // namespace plait::planning
