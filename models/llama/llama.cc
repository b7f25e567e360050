#include "models/llama/llama.h"

#include <torch/nn/module.h>

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/initial_values.h"
#include "models/key_value_cache.h"
#include "models/layer_text.h"
#include "models/llama/block.h"
#include "parallel/tensor/collectives.h"
#include "parallel/tensor/linear.h"
#include "parallel/tensor/vocabulary.h"

namespace plait::llama {

using tensor_parallel::Partial;

Llama::Llama(const LlamaOptions& options, const at::TensorOptions& tensor_options)
    : SplitModuleModel(std::make_shared<torch::nn::Module>("Transformer")), options_(options) {
  PLAIT_CHECK_OK(Validate(options));
  const auto rotation = std::make_shared<const Rotation>(options, tensor_options);
  tok_embeddings_ =
      transformer::Embedding(*module(), "tok_embeddings", options.vocab_size, options.dim, tensor_options);
  const auto layers = transformer::Container(*module(), "layers");
  for (std::int64_t i = 0; i < options.n_layers; ++i) {
    AddBlock(absl::StrCat("layers.", i),
             std::make_shared<Block>(transformer::Container(*layers, absl::StrCat(i)), i, options, rotation,
                                     tensor_options));
  }
  norm_ = std::make_shared<transformer::Norm>(*module(), "norm", options.dim, false, options.norm_eps,
                                              tensor_options, transformer::NormKind::kRms);
  output_ = transformer::Embedding(*module(), "output", options.vocab_size, options.dim, tensor_options);
  SetUsedBy(models::UsedBy::kPrologue, {"tok_embeddings"});
  SetUsedBy(models::UsedBy::kEpilogue, {"norm", "output"});
  for (std::size_t unit = 0; unit <= blocks().size(); ++unit) ResetParameters(unit);
}

models::BlockState Llama::Prologue(const models::Batch& batch, const models::BlockContext& context) {
  const at::Tensor& tokens = batch.inputs;
  PLAIT_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.numel() > 0)
      << "tokens of shape " << tokens.sizes() << ", expected (batch, seq) of int64";
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length();
  // A part of a sequence may be padded beyond the whole one.
  const bool split = batch.sequence.positions.defined();
  const std::int64_t last = split ? batch.sequence.length : seen + tokens.size(1);
  PLAIT_CHECK(last <= options_.max_seq_len) << last << " positions, the model has " << options_.max_seq_len;
  CheckSequence(tokens.size(1));
  const Partial rows = Embedding(embedding_axis_, tok_embeddings_, options_.vocab_size, tokens);
  return {.hidden = HiddenOf(ToResidual(embedding_axis_, rows), tokens.size(0))};
}

tensor_parallel::Shard<1> Llama::Logits(const at::Tensor& hidden) const {
  return ColumnLinear(output_axis_, norm_->Forward(RowsOf(hidden)), {{output_}})[0];
}

at::Tensor Llama::Output(const models::BlockState& state) {
  return Unslice(output_axis_, Logits(state.hidden), options_.vocab_size)
      .local()
      .view({state.hidden.size(0), -1, options_.vocab_size});
}

models::LossSum Llama::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  CheckTargets(batch.targets, state.hidden);
  return CrossEntropySum(output_axis_, Logits(state.hidden), options_.vocab_size, batch.targets.reshape({-1}),
                         batch.valid_targets);
}

std::vector<tensor_parallel::SplitGroup> Llama::SplitGroups(int ranks) {
  using tensor_parallel::Split, tensor_parallel::TensorAxis;
  std::vector<tensor_parallel::SplitGroup> groups = {
      {.name = "tok_embeddings",
       .layers = {{.name = "tok_embeddings", .split = Split::kVocabulary, .weight = tok_embeddings_}},
       .use = [this](const TensorAxis& axis) { embedding_axis_ = axis; }},
      {.name = "output",
       .layers = {{.name = "output", .split = Split::kVocabulary, .weight = output_}},
       .use = [this](const TensorAxis& axis) { output_axis_ = axis; }}};
  for (std::size_t i = 0; i < blocks().size(); ++i) {
    for (tensor_parallel::SplitGroup& group :
         static_cast<Block&>(*blocks()[i]).SplitGroups(absl::StrCat("layers.", i), ranks)) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

void Llama::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit > 0) return static_cast<const Block&>(*blocks()[unit - 1]).ResetParameters(*this);
  models::DrawNormal(tok_embeddings_, PlacementOf(tok_embeddings_), 1);
  norm_->Reset();
  models::DrawNormal(output_, PlacementOf(output_), 1 / std::sqrt(static_cast<double>(options_.dim)), 3);
}

std::string Llama::Description() const {
  using models::LinearText;
  const std::int64_t dim = options_.dim, kv = dim / options_.n_heads * options_.n_kv_heads;
  return absl::StrCat(
      "Transformer(\n  (tok_embeddings): ", models::EmbeddingText(options_.vocab_size, dim), "\n",
      "  (layers): ModuleList(\n    ", models::RepeatText(options_.n_layers), "TransformerBlock(\n",
      "      (attention): Attention(\n",                                //
      "        (wq): ", LinearText(dim, dim, false), "\n",              //
      "        (wk): ", LinearText(dim, kv, false), "\n",               //
      "        (wv): ", LinearText(dim, kv, false), "\n",               //
      "        (wo): ", LinearText(dim, dim, false), "\n      )\n",     //
      "      (feed_forward): FeedForward(\n",                           //
      "        (w1): ", LinearText(dim, options_.hidden, false), "\n",  //
      "        (w2): ", LinearText(options_.hidden, dim, false), "\n",  //
      "        (w3): ", LinearText(dim, options_.hidden, false), "\n      )\n",
      "      (attention_norm): RMSNorm()\n      (ffn_norm): RMSNorm()\n    )\n  )\n",
      "  (norm): RMSNorm()\n  (output): ", LinearText(dim, options_.vocab_size, false), "\n)");
}

std::int64_t ParameterCount(const LlamaOptions& options) {
  const std::int64_t dim = options.dim, kv = dim / options.n_heads * options.n_kv_heads;
  const std::int64_t block = 2 * dim * dim + 2 * kv * dim + 3 * options.hidden * dim + 2 * dim;
  return 2 * options.vocab_size * dim + options.n_layers * block + dim;
}

double FlopsPerToken(const LlamaOptions& options, std::int64_t seq) {
  const std::int64_t table = options.vocab_size * options.dim;
  return 6.0 * static_cast<double>(ParameterCount(options) - table) +
         12.0 * static_cast<double>(options.n_layers * options.dim * seq);
}

}  // namespace plait::llama
