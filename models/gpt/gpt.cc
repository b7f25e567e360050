#include "models/gpt/gpt.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <torch/nn/module.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/gpt/block.h"
#include "models/linear/linear.h"

namespace plait::gpt {
namespace {

struct GptModule final : torch::nn::Module {
  GptModule(const GptOptions& options, const at::TensorOptions& tensor_options)
      : Module("GPT"),
        transformer(Container(*this, "transformer")),
        wte(Embedding(*transformer, "wte", options.vocab_size, options.n_embd, tensor_options)),
        wpe(Embedding(*transformer, "wpe", options.block_size, options.n_embd, tensor_options)),
        blocks(Blocks(*Container(*transformer, "h"), options, tensor_options)),
        ln_f(*transformer, "ln_f", options, tensor_options) {}

  static std::vector<Block> Blocks(torch::nn::Module& h, const GptOptions& options,
                                   const at::TensorOptions& tensor_options) {
    std::vector<Block> blocks;
    for (std::int64_t i = 0; i < options.n_layer; ++i) {
      blocks.emplace_back(Container(h, absl::StrCat(i)), options, tensor_options);
    }
    return blocks;
  }

  std::shared_ptr<torch::nn::Module> transformer;
  at::Tensor wte, wpe;
  std::vector<Block> blocks;
  Norm ln_f;
  models::BlockRunner block_runner;
};

void CheckTokens(const GptOptions& options, const at::Tensor& tokens, std::int64_t seen) {
  PLAIT_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.numel() > 0)
      << "tokens of shape " << tokens.sizes() << ", expected (batch, seq) of int64";
  PLAIT_CHECK(seen + tokens.size(1) <= options.block_size)
      << seen + tokens.size(1) << " positions, the model has " << options.block_size;
}

// The hidden states behind the last block, (batch, seq, n_embd).
at::Tensor Hidden(const GptModule& model, const GptOptions& options, const at::Tensor& tokens,
                  KeyValueCache* cache) {
  const std::int64_t seen = cache == nullptr ? 0 : cache->length(), seq = tokens.size(1);
  CheckTokens(options, tokens, seen);
  const at::Tensor& all = model.wpe;
  const at::Tensor positions = seq == options.block_size ? all : all.narrow(0, seen, seq);
  at::Tensor x = at::embedding(model.wte, tokens).add_(positions);
  if (model.is_training() && options.dropout > 0) x = at::dropout(x, options.dropout, true);
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const auto forward = [block = &model.blocks[i], i, cache](const at::Tensor& input) {
      return block->Forward(input, i, cache);
    };
    x = models::RunBlock(model.block_runner, i, forward, x);
  }
  return x;
}

// (rows, n_embd) -> (rows, vocab_size).
at::Tensor Logits(const GptModule& model, const at::Tensor& rows) {
  return linear::Linear(model.ln_f.Forward(rows), model.wte);
}

at::Tensor LogitsOf(const GptModule& model, const GptOptions& options, const at::Tensor& tokens,
                    KeyValueCache* cache) {
  const at::Tensor rows = Hidden(model, options, tokens, cache).reshape({-1, options.n_embd});
  return Logits(model, rows).view({tokens.size(0), tokens.size(1), options.vocab_size});
}

const GptModule& Of(const std::shared_ptr<torch::nn::Module>& module) {
  return static_cast<const GptModule&>(*module);
}

constexpr char kBlocks[] = "transformer.h.";

}  // namespace

Gpt::Gpt(const GptOptions& options, const at::TensorOptions& tensor_options) : options_(options) {
  PLAIT_CHECK_OK(Validate(options));
  module_ = std::make_shared<GptModule>(options, tensor_options);
  for (std::int64_t unit = 0; unit <= options.n_layer; ++unit) ResetParameters(unit);
}

at::Tensor Gpt::Forward(const at::Tensor& tokens) const {
  return LogitsOf(Of(module_), options_, tokens, nullptr);
}

at::Tensor Gpt::Loss(const at::Tensor& tokens, const at::Tensor& targets) const {
  PLAIT_CHECK(tokens.sizes() == targets.sizes())
      << "tokens of shape " << tokens.sizes() << ", targets of shape " << targets.sizes();
  const at::Tensor rows = Hidden(Of(module_), options_, tokens, nullptr).reshape({-1, options_.n_embd});
  return models::CrossEntropy(Logits(Of(module_), rows), targets.reshape({-1}));
}

at::Tensor Gpt::Forward(const at::Tensor& tokens, KeyValueCache& cache) const {
  const at::NoGradGuard no_grad;
  return LogitsOf(Of(module_), options_, tokens, &cache);
}

at::Tensor Gpt::NextLogits(const at::Tensor& tokens, KeyValueCache& cache) const {
  const at::NoGradGuard no_grad;
  const at::Tensor hidden = Hidden(Of(module_), options_, tokens, &cache);
  return Logits(Of(module_), hidden.select(1, tokens.size(1) - 1));
}

void Gpt::SetTraining(bool training) const { module_->train(training); }

std::vector<models::ParameterUnit> Gpt::units() const {
  return models::UnitsByPrefix(module_->named_parameters().pairs(), kBlocks, options_.n_layer);
}

void Gpt::ResetParameters(std::size_t unit) const {
  const GptModule& model = Of(module_);
  PLAIT_CHECK(unit <= model.blocks.size()) << "unit " << unit << " of " << model.blocks.size() + 1;
  if (unit > 0) return model.blocks[unit - 1].ResetParameters();
  DrawNormal(model.wte, kInitialDeviation);
  DrawNormal(model.wpe, kInitialDeviation);
  Fill(model.ln_f.weight, 1);
  Fill(model.ln_f.bias, 0);
}

void Gpt::set_block_runner(models::BlockRunner runner) const {
  static_cast<GptModule&>(*module_).block_runner = std::move(runner);
}

std::vector<at::Tensor> Gpt::parameters() const { return module_->parameters(); }

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
