#include "models/llama/llama.h"

#include <ATen/ops/embedding.h>
#include <torch/nn/module.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/linear/linear.h"
#include "models/llama/block.h"

namespace plait::llama {
namespace {

constexpr char kBlocks[] = "layers.";

struct LlamaModule final : torch::nn::Module {
  LlamaModule(const LlamaOptions& options, const at::TensorOptions& tensor_options)
      : Module("Transformer"), rotation(options, tensor_options) {
    tok_embeddings = Weight(*this, "tok_embeddings", {options.vocab_size, options.dim}, tensor_options);
    const auto layers = Container(*this, "layers");
    for (std::int64_t i = 0; i < options.n_layers; ++i) {
      blocks.emplace_back(*Container(*layers, absl::StrCat(i)), i, options, tensor_options);
    }
    norm = Weight(*this, "norm", {options.dim}, tensor_options);
    output = Weight(*this, "output", {options.vocab_size, options.dim}, tensor_options);
  }

  Rotation rotation;
  at::Tensor tok_embeddings, norm, output;
  std::vector<Block> blocks;
  models::BlockRunner block_runner;
};

const LlamaModule& Of(const std::shared_ptr<torch::nn::Module>& module) {
  return static_cast<const LlamaModule&>(*module);
}

}  // namespace

absl::Status Validate(const LlamaOptions& options) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"vocab_size", options.vocab_size},
                                                        {"max_seq_len", options.max_seq_len},
                                                        {"dim", options.dim},
                                                        {"n_layers", options.n_layers},
                                                        {"n_heads", options.n_heads},
                                                        {"n_kv_heads", options.n_kv_heads},
                                                        {"hidden", options.hidden}};
  for (const auto& [name, size] : sizes) {
    if (size <= 0)
      return absl::InvalidArgumentError(absl::StrCat(name, " is ", size, "; expected at least 1"));
  }
  if (options.dim % (2 * options.n_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dim is ", options.dim, "; expected heads of an even width, and n_heads is ", options.n_heads));
  }
  if (options.n_heads % options.n_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "n_kv_heads is ", options.n_kv_heads, "; expected a divisor of n_heads, which is ", options.n_heads));
  }
  return absl::OkStatus();
}

Llama::Llama(const LlamaOptions& options, const at::TensorOptions& tensor_options) : options_(options) {
  PLAIT_CHECK_OK(Validate(options));
  module_ = std::make_shared<LlamaModule>(options, tensor_options);
  for (std::int64_t unit = 0; unit <= options.n_layers; ++unit) ResetParameters(unit);
}

// (batch seq, vocab_size).
at::Tensor Llama::LogitRows(const at::Tensor& tokens) const {
  PLAIT_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.numel() > 0)
      << "tokens of shape " << tokens.sizes() << ", expected (batch, seq) of int64";
  PLAIT_CHECK(tokens.size(1) <= options_.max_seq_len)
      << tokens.size(1) << " positions, the model has " << options_.max_seq_len;
  const LlamaModule& model = Of(module_);
  at::Tensor x = at::embedding(model.tok_embeddings, tokens);
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const auto forward = [block = &model.blocks[i], rotation = &model.rotation](const at::Tensor& input) {
      return block->Forward(input, *rotation);
    };
    x = models::RunBlock(model.block_runner, i, forward, x);
  }
  const at::Tensor rows = Normalised(x.reshape({-1, options_.dim}), model.norm, options_.norm_eps);
  return linear::Linear(rows, model.output);
}

at::Tensor Llama::Forward(const at::Tensor& tokens) const {
  return LogitRows(tokens).view({tokens.size(0), tokens.size(1), options_.vocab_size});
}

at::Tensor Llama::Loss(const at::Tensor& tokens, const at::Tensor& targets) const {
  PLAIT_CHECK(tokens.sizes() == targets.sizes())
      << "tokens of shape " << tokens.sizes() << ", targets of shape " << targets.sizes();
  return models::CrossEntropy(LogitRows(tokens), targets.reshape({-1}));
}

std::vector<models::ParameterUnit> Llama::units() const {
  return models::UnitsByPrefix(module_->named_parameters().pairs(), kBlocks, options_.n_layers);
}

void Llama::ResetParameters(std::size_t unit) const {
  const LlamaModule& model = Of(module_);
  PLAIT_CHECK(unit <= model.blocks.size()) << "unit " << unit << " of " << model.blocks.size() + 1;
  if (unit > 0) return model.blocks[unit - 1].ResetParameters();
  Draw(model.tok_embeddings, 1);
  FillWithOnes(model.norm);
  Draw(model.output, 1 / std::sqrt(static_cast<double>(options_.dim)), 3);
}

void Llama::set_block_runner(models::BlockRunner runner) const {
  static_cast<LlamaModule&>(*module_).block_runner = std::move(runner);
}

std::vector<at::Tensor> Llama::parameters() const { return module_->parameters(); }

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
