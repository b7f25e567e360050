#include "models/gpt/gpt.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <torch/nn/module.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/gpt/block.h"
#include "models/key_value_cache.h"
#include "models/linear/linear.h"

namespace plait::gpt {

Gpt::Gpt(const GptOptions& options, const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("GPT")), options_(options) {
  PLAIT_CHECK_OK(Validate(options));
  const auto transformer = Container(*module(), "transformer");
  wte_ = Embedding(*transformer, "wte", options.vocab_size, options.n_embd, tensor_options);
  wpe_ = Embedding(*transformer, "wpe", options.block_size, options.n_embd, tensor_options);
  const auto h = Container(*transformer, "h");
  for (std::int64_t i = 0; i < options.n_layer; ++i) {
    AddBlock(absl::StrCat("transformer.h.", i),
             std::make_shared<Block>(Container(*h, absl::StrCat(i)), options, tensor_options));
  }
  ln_f_ = std::make_shared<Norm>(*transformer, "ln_f", options, tensor_options);
  SetUsedBy(models::UsedBy::kPrologue, {"transformer.wpe"});
  SetUsedBy(models::UsedBy::kEpilogue, {"transformer.ln_f"});
  for (std::size_t unit = 0; unit <= blocks().size(); ++unit) ResetParameters(unit);
}

models::BlockState Gpt::Prologue(const models::Batch& batch, const models::BlockContext& context) {
  const at::Tensor& tokens = batch.inputs;
  PLAIT_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.numel() > 0)
      << "tokens of shape " << tokens.sizes() << ", expected (batch, seq) of int64";
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length(), seq = tokens.size(1);
  PLAIT_CHECK(seen + seq <= options_.block_size)
      << seen + seq << " positions, the model has " << options_.block_size;
  const at::Tensor positions = seq == options_.block_size ? wpe_ : wpe_.narrow(0, seen, seq);
  at::Tensor x = at::embedding(wte_, tokens).add_(positions);
  if (module()->is_training() && options_.dropout > 0) x = at::dropout(x, options_.dropout, true);
  return {.hidden = x};
}

at::Tensor Gpt::Logits(const at::Tensor& hidden) const {
  return linear::Linear(ln_f_->Forward(hidden.reshape({-1, options_.n_embd})), wte_);
}

at::Tensor Gpt::Output(const models::BlockState& state) {
  return Logits(state.hidden).view({state.hidden.size(0), -1, options_.vocab_size});
}

models::LossSum Gpt::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  PLAIT_CHECK(batch.targets.sizes() == state.hidden.sizes().slice(0, 2))
      << "targets of shape " << batch.targets.sizes() << " for hidden states of shape "
      << state.hidden.sizes();
  return models::CrossEntropySum(Logits(state.hidden), batch.targets.reshape({-1}), batch.valid_targets);
}

void Gpt::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit > 0) return static_cast<const Block&>(*blocks()[unit - 1]).ResetParameters();
  DrawNormal(wte_, kInitialDeviation);
  DrawNormal(wpe_, kInitialDeviation);
  Fill(ln_f_->weight, 1);
  Fill(ln_f_->bias, 0);
}

std::int64_t ParameterCount(const GptOptions& options, bool with_positions) {
  const std::int64_t width = options.n_embd, bias = options.bias ? 1 : 0;
  const std::int64_t norm = (1 + bias) * width;
  // c_attn, c_proj, c_fc, c_proj: 3 + 1 + 4 + 4 squares, 3 + 1 + 4 + 1 widths of biases.
  const std::int64_t block = 2 * norm + 12 * width * width + bias * 9 * width;
  const std::int64_t positions = with_positions ? options.block_size * width : 0;
  return options.vocab_size * width + positions + options.n_layer * block + norm;
}

double FlopsPerToken(const GptOptions& options, std::int64_t seq) {
  return 6.0 * static_cast<double>(ParameterCount(options, false)) +
         12.0 * static_cast<double>(options.n_layer * options.n_embd * seq);
}

}  // namespace plait::gpt
