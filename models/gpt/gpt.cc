#include "models/gpt/gpt.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <torch/nn/module.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/initial_values.h"
#include "models/key_value_cache.h"
#include "models/moe/moe_mlp.h"
#include "models/transformer/block.h"
#include "parallel/tensor/collectives.h"
#include "parallel/tensor/linear.h"
#include "parallel/tensor/vocabulary.h"

namespace plait::gpt {

using tensor_parallel::Residual;
using tensor_parallel::Shard;
using transformer::Block;
using transformer::Container;

namespace {

constexpr double kNormEps = 1e-5;
// Standard deviation of initial weights, as in GPT-2.
constexpr double kInitialDeviation = 0.02;
constexpr transformer::BlockNames kNames = {"ln_1", "attn", "c_attn", "c_proj",
                                            "ln_2", "mlp",  "c_fc",   "c_proj"};

transformer::BlockOptions BlockOptionsOf(const GptOptions& o) {
  return {.width = o.n_embd,
          .heads = o.n_head,
          .head_width = o.n_embd / o.n_head,
          .hidden = 4 * o.n_embd,
          .qkv_bias = o.bias,
          .bias = o.bias,
          .norm_eps = kNormEps,
          .gelu = o.gelu == Gelu::kTanh ? rowwise::GeluKind::kTanh : rowwise::GeluKind::kExact,
          .dropout = o.dropout,
          .capacity = o.block_size,
          .deviation = kInitialDeviation,
          // Each block adds to the residual stream twice; this keeps the variance independent of the depth.
          .out_deviation = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(o.n_layer))};
}

const Block& BlockOf(const std::shared_ptr<models::Block>& block) {
  return static_cast<const Block&>(*block);
}

// Returns the value of `sum`, with the gradients of `sum + loss`.
at::Tensor WithGradientsOf(const at::Tensor& sum, const at::Tensor& loss) {
  return sum + (loss - loss.detach()).to(sum.scalar_type());
}

}  // namespace

Gpt::Gpt(const GptOptions& options, const at::TensorOptions& tensor_options)
    : SplitModuleModel(std::make_shared<torch::nn::Module>("GPT")), options_(options) {
  PLAIT_CHECK_OK(Validate(options));
  const auto parts = Container(*module(), "transformer");
  wte_ = transformer::Embedding(*parts, "wte", options.vocab_size, options.n_embd, tensor_options);
  wpe_ = transformer::Embedding(*parts, "wpe", options.block_size, options.n_embd, tensor_options);
  const auto h = Container(*parts, "h");
  for (std::int64_t i = 0; i < options.n_layer; ++i) {
    transformer::BlockOptions of_block = BlockOptionsOf(options);
    if (options.HasExperts(i)) of_block.moe = options.moe;
    AddBlock(absl::StrCat("transformer.h.", i),
             std::make_shared<Block>(Container(*h, absl::StrCat(i)), i, of_block, kNames, tensor_options));
  }
  ln_f_ = std::make_shared<transformer::Norm>(*parts, "ln_f", options.n_embd, options.bias, kNormEps,
                                              tensor_options);
  SetUsedBy(models::UsedBy::kPrologue, {"transformer.wpe"});
  SetUsedBy(models::UsedBy::kEpilogue, {"transformer.ln_f"});
  for (std::size_t i = 0; i < blocks().size(); ++i) {
    const Block& block = BlockOf(blocks()[i]);
    if (block.moe() == nullptr) continue;
    AddUnit(absl::StrCat("transformer.h.", i, ".", block.experts_name()), static_cast<int>(i), "ep_replicate",
            "ep_shard");
    for (const at::Tensor& bias : block.moe()->NeverDecay()) NeverDecay(bias);
    with_experts_.push_back(i);
  }
  const std::size_t units = 1 + blocks().size() + with_experts_.size();
  for (std::size_t unit = 0; unit < units; ++unit) ResetParameters(unit);
}

std::vector<moe::MoeMlp*> Gpt::moe_layers() const {
  std::vector<moe::MoeMlp*> layers;
  for (const std::size_t block : with_experts_) layers.push_back(BlockOf(blocks()[block]).moe());
  return layers;
}

void Gpt::EndStep(bool updated) {
  for (moe::MoeMlp* layer : moe_layers()) layer->EndStep(updated);
}

models::BlockState Gpt::Prologue(const models::Batch& batch, const models::BlockContext& context) {
  const at::Tensor& tokens = batch.inputs;
  PLAIT_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.numel() > 0)
      << "tokens of shape " << tokens.sizes() << ", expected (batch, seq) of int64";
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length(), seq = tokens.size(1);
  // A part of a sequence may be padded beyond the whole one.
  const std::int64_t last = batch.sequence.positions.defined() ? batch.sequence.length : seen + seq;
  PLAIT_CHECK(last <= options_.block_size) << last << " positions, the model has " << options_.block_size;
  CheckSequence(seq);
  Residual x = ToResidual(table_axis_, Embedding(table_axis_, wte_, options_.vocab_size, tokens));
  x = Map(x, [&](const at::Tensor& rows) {
    if (context.cache == nullptr || context.cache->rows().empty())
      return AddPositions(rows, seen, seq, batch.sequence);
    const at::Tensor next = context.cache->NextPositions().to(rows.device());
    PLAIT_CHECK(seq == 1) << "a cache of rows takes one new token per row";
    return rows + at::embedding(wpe_, next).view(rows.sizes());
  });
  if (module()->is_training() && options_.dropout > 0) {
    x = transformer::DropRows(tensor_axis(), x, tokens.size(0), options_.dropout, batch.random,
                              batch.sequence, "embedding", 0);
  }
  return {.hidden = HiddenOf(x, tokens.size(0))};
}

// Adds position embeddings to this rank's rows of (batch, seq), which follow `seen` earlier positions.
at::Tensor Gpt::AddPositions(const at::Tensor& rows, std::int64_t seen, std::int64_t seq,
                             const models::SequencePart& sequence) const {
  if (!tensor_axis().sequence_parallel() && !sequence.positions.defined()) {
    const at::Tensor positions = seq == options_.block_size ? wpe_ : wpe_.narrow(0, seen, seq);
    return rows.view({-1, seq, rows.size(1)}).add(positions).view(rows.sizes());
  }
  const bool split = tensor_axis().sequence_parallel();
  const std::int64_t first = split ? tensor_axis().rank() * rows.size(0) : 0;
  const auto options = at::TensorOptions(at::kLong).device(rows.device());
  at::Tensor index = at::arange(first, first + rows.size(0), options).remainder_(seq);
  if (sequence.positions.defined()) index = sequence.positions.to(rows.device()).index_select(0, index);
  return rows + at::embedding(wpe_, index);
}

Shard<1> Gpt::Logits(const at::Tensor& hidden) const {
  return ColumnLinear(table_axis_, ln_f_->Forward(RowsOf(hidden)), {{wte_}})[0];
}

at::Tensor Gpt::Output(const models::BlockState& state) {
  return Unslice(table_axis_, Logits(state.hidden), options_.vocab_size)
      .local()
      .view({state.hidden.size(0), -1, options_.vocab_size});
}

models::LossSum Gpt::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  CheckTargets(batch.targets, state.hidden);
  models::LossSum loss = CrossEntropySum(table_axis_, Logits(state.hidden), options_.vocab_size,
                                         batch.targets.reshape({-1}), batch.valid_targets);
  if (!state.auxiliary_loss.defined()) return loss;
  // Sums are divided by the number of valid targets, and the auxiliary one is over all tokens: of all ranks, as ranks
  // have ignored targets in different numbers.
  const double share = moe_layers().front()->ValidPerToken(batch, loss.count);
  loss.sum = WithGradientsOf(loss.sum, state.auxiliary_loss * share);
  return loss;
}

std::vector<tensor_parallel::SplitGroup> Gpt::SplitGroups(int /*ranks*/) {
  using tensor_parallel::Split, tensor_parallel::TensorAxis;
  std::vector<tensor_parallel::SplitGroup> groups = {
      {.name = "transformer.wte",
       .layers = {{.name = "transformer.wte", .split = Split::kVocabulary, .weight = wte_}},
       .use = [this](const TensorAxis& axis) { table_axis_ = axis; }}};
  for (std::size_t i = 0; i < blocks().size(); ++i) {
    for (tensor_parallel::SplitGroup& group :
         static_cast<Block&>(*blocks()[i]).SplitGroups(absl::StrCat("transformer.h.", i))) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

void Gpt::ResetParameters(std::size_t unit) {
  const std::size_t first_experts = 1 + blocks().size();
  PLAIT_CHECK(unit < first_experts + with_experts_.size()) << "unit " << unit;
  if (unit >= first_experts) {
    return BlockOf(blocks()[with_experts_[unit - first_experts]]).ResetExperts(*this);
  }
  if (unit > 0) return BlockOf(blocks()[unit - 1]).ResetParameters(*this);
  models::DrawNormal(wte_, PlacementOf(wte_), kInitialDeviation);
  models::DrawNormal(wpe_, PlacementOf(wpe_), kInitialDeviation);
  ln_f_->Reset();
}

std::int64_t ParameterCount(const GptOptions& options, bool with_positions) {
  const std::int64_t width = options.n_embd, bias = options.bias ? 1 : 0;
  const std::int64_t norm = (1 + bias) * width;
  // c_attn, c_proj, c_fc, c_proj: 3 + 1 + 4 + 4 squares, 3 + 1 + 4 + 1 widths of biases.
  const std::int64_t block = 2 * norm + 12 * width * width + bias * 9 * width;
  const std::int64_t positions = with_positions ? options.block_size * width : 0;
  const std::int64_t mlp = 8 * width * width + bias * 5 * width;
  std::int64_t blocks = options.n_layer * block;
  for (std::int64_t i = 0; i < options.n_layer; ++i) {
    if (options.HasExperts(i))
      blocks += moe::ParameterCount(options.moe, width, options.moe.gate.experts) - mlp;
  }
  return options.vocab_size * width + positions + blocks + norm;
}

double FlopsPerToken(const GptOptions& options, std::int64_t seq) {
  std::int64_t unused = 0;  // parameters of the experts that a token does not use
  for (std::int64_t i = 0; i < options.n_layer; ++i) {
    if (!options.HasExperts(i)) continue;
    unused += moe::ParameterCount(options.moe, options.n_embd, options.moe.gate.experts) -
              moe::ParameterCount(options.moe, options.n_embd, options.moe.gate.k);
  }
  return 6.0 * static_cast<double>(ParameterCount(options, false) - unused) +
         12.0 * static_cast<double>(options.n_layer * options.n_embd * seq);
}

}  // namespace plait::gpt
