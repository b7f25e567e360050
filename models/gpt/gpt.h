// GPT-2 as in nanoGPT: learned positions, pre-norm blocks, causal attention, tied head.
//
//   plait::gpt::Gpt gpt({.vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128,
//                        .bias = false}, at::kFloat);
//   models::LossSum loss = models::RunModel(gpt, {.inputs = tokens, .targets = targets});
//   loss.sum.div(loss.count).backward();            // both (batch, seq) int64
//   gpt.SetTraining(false);
//   at::Tensor logits = gpt.Forward(tokens);        // (batch, seq, vocab_size)
//
//   (batch, seq)               tokens
//     wte + wpe, dropout       (batch, seq, n_embd)
//     n_layer blocks:          x + c_proj(attention(c_attn(ln_1(x))))
//                              x + c_proj(gelu(c_fc(ln_2(x))))     4 n_embd wide
//     ln_f, times wte^T        (batch, seq, vocab_size)
//
// Hidden states have the parameters' dtype: float32, float64, bfloat16. State dict, in GPT-2's order and
// names: transformer.wte.weight (vocab_size, n_embd), transformer.wpe.weight (block_size, n_embd),
// transformer.h.0.ln_1.weight, [.bias,] .attn.c_attn.weight (3 n_embd, n_embd), .attn.c_proj.weight,
// .ln_2.weight, .mlp.c_fc.weight, .mlp.c_proj.weight, ..., transformer.ln_f.weight. The head is wte.weight
// and not listed twice. Weights of linear layers are (out, in).
//
// The loss is the cross entropy of the next tokens; negative targets are ignored. With step size dt a block
// computes y = x + dt attention(x), then y + dt mlp(y). With a cache (models/key_value_cache.h) the tokens continue
// the positions that it holds. The root unit holds wte, wpe and ln_f. With a mixture of experts (options.h) the
// gradients include the gates' balance losses, but the returned loss does not. Initial values are nanoGPT's:
// normal with standard deviation 0.02, 0.02 / sqrt(2 n_layer) for both c_proj, biases 0. Local, unless layers are
// split.
#ifndef PLAIT_MODELS_GPT_GPT_H_
#define PLAIT_MODELS_GPT_GPT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/gpt/options.h"
#include "models/moe/distribute.h"
#include "models/split_module_model.h"
#include "parallel/tensor/values.h"

namespace plait::transformer {
struct Norm;
}

namespace plait::gpt {

class Gpt final : public models::SplitModuleModel, public moe::ExpertModel {
 public:
  // Starts in training mode. On the meta device nothing is allocated or drawn. Aborts if Validate(options) fails.
  Gpt(const GptOptions& options, const at::TensorOptions& tensor_options);

  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  // In the format in which PyTorch prints nanoGPT's model.
  std::string Description() const override;

  // Splits attention by heads, the MLP by its hidden width, and the tied embedding by vocabulary.
  std::vector<tensor_parallel::SplitGroup> SplitGroups(int ranks) override;
  std::vector<moe::MoeMlp*> moe_layers() const override;
  models::SplitModuleModel& split_model() override { return *this; }
  void EndStep(bool updated) override;

  const GptOptions& options() const { return options_; }

 private:
  // Hidden states -> (batch seq, this rank's part of vocab_size).
  tensor_parallel::Shard<1> Logits(const at::Tensor& hidden) const;
  at::Tensor AddPositions(const at::Tensor& rows, std::int64_t seen, std::int64_t seq,
                          const models::SequencePart& sequence) const;

  GptOptions options_;
  std::vector<std::size_t> with_experts_;  // blocks
  tensor_parallel::TensorAxis table_axis_;
  at::Tensor wte_, wpe_;
  std::shared_ptr<const transformer::Norm> ln_f_;
};

// Number of parameters, without building a model. Quoted counts usually exclude the position embeddings.
std::int64_t ParameterCount(const GptOptions& options, bool with_positions);

// FLOPs per token of a training step, forward and backward: 6 N + 12 L H Q T (PaLM, appendix B), with N parameters
// (without positions, and with only the k experts that a token uses), H Q = n_embd and T = seq.
double FlopsPerToken(const GptOptions& options, std::int64_t seq);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_GPT_H_
