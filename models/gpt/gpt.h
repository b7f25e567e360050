// GPT-2 as in nanoGPT: learned positions, blocks with the norm in front, causal attention, tied head.
//
//   plait::gpt::Gpt gpt({.vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128,
//                        .bias = false}, at::kFloat);
//   at::Tensor loss = gpt.Loss(tokens, targets);    // both (batch, seq) int64
//   loss.backward();
//   gpt.SetTraining(false);
//   at::Tensor logits = gpt.Forward(tokens);        // (batch, seq, vocab_size)
//
//   (batch, seq)               tokens
//     wte + wpe, dropout       (batch, seq, n_embd)
//     n_layer blocks:          x + c_proj(attention(c_attn(ln_1(x))))
//                              x + c_proj(gelu(c_fc(ln_2(x))))     4 n_embd wide
//     ln_f, times wte^T        (batch, seq, vocab_size)
//
// Hidden states have the parameters' type: float32, float64, bfloat16. State dict, in GPT-2's order and
// names: transformer.wte.weight (vocab_size, n_embd), transformer.wpe.weight (block_size, n_embd),
// transformer.h.0.ln_1.weight, [.bias,] .attn.c_attn.weight (3 n_embd, n_embd), .attn.c_proj.weight,
// .ln_2.weight, .mlp.c_fc.weight, .mlp.c_proj.weight, ..., transformer.ln_f.weight. The head is wte.weight
// and not listed twice. Weights of linear layers are (out, in).
//
// Blocks for engines (models/block_runner.h): the root holds wte, wpe and ln_f. Initial values are nanoGPT's:
// normal of deviation 0.02, of 0.02 / sqrt(2 n_layer) for both c_proj, biases 0. A handle: copies share
// parameters, mode and block runner. Local.
#ifndef PLAIT_MODELS_GPT_GPT_H_
#define PLAIT_MODELS_GPT_GPT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/block_runner.h"
#include "models/gpt/key_value_cache.h"
#include "models/gpt/options.h"

namespace torch::nn {
class Module;
}

namespace plait::gpt {

class Gpt {
 public:
  // Begins in training mode. On kMeta no memory is taken and nothing is drawn. Options that Validate()
  // refuses are a programming error.
  Gpt(const GptOptions& options, const at::TensorOptions& tensor_options);

  // (batch, seq) -> (batch, seq, vocab_size). seq is at most block_size. Recorded by autograd.
  at::Tensor Forward(const at::Tensor& tokens) const;

  // Mean cross entropy of the next tokens; a scalar, float32 for half-precision parameters. Recorded.
  at::Tensor Loss(const at::Tensor& tokens, const at::Tensor& targets) const;

  // The tokens are the positions behind those in the cache, which takes them; together at most block_size.
  // Logits of the new positions, (batch, new, vocab_size). Each block must run once. Not recorded.
  at::Tensor Forward(const at::Tensor& tokens, KeyValueCache& cache) const;
  // The same for the last position alone, (batch, vocab_size).
  at::Tensor NextLogits(const at::Tensor& tokens, KeyValueCache& cache) const;

  // Whether dropout acts.
  void SetTraining(bool training) const;

  // Root, then a unit for each block.
  std::vector<models::ParameterUnit> units() const;
  // Draws the initial values of one unit; all units in their order: what the constructor draws.
  void ResetParameters(std::size_t unit) const;
  void set_block_runner(models::BlockRunner runner) const;

  // Layer by layer, as PyTorch prints nanoGPT.
  std::string Description() const;

  const GptOptions& options() const { return options_; }
  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  // In the order of the state dict.
  std::vector<at::Tensor> parameters() const;

 private:
  GptOptions options_;
  std::shared_ptr<torch::nn::Module> module_;
};

// Parameters by the formula, without a model. Positions are not counted where parameters are quoted.
std::int64_t ParameterCount(const GptOptions& options, bool with_positions);

// Floating point operations of one token's step, forward and backward: 6 N + 12 L H Q T (PaLM, appendix B),
// N parameters without positions, sequences of T = seq.
double FlopsPerToken(const GptOptions& options, std::int64_t seq);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_GPT_H_
