// A Llama-like decoder: RMS norms, rotary positions, grouped-query attention, SwiGLU, an untied head.
//
//   plait::llama::Llama llama({}, at::kFloat);          // 33,599,744 parameters
//   models::LossSum loss = models::RunModel(llama, {.inputs = tokens, .targets = targets});
//   loss.sum.div(loss.count).backward();                // both (batch, seq) int64
//
//   (batch, seq)               tokens
//     tok_embeddings           (batch, seq, dim)
//     n_layers blocks:         x + wo(attention(rotary(wq n), rotary(wk n), wv n)),  n = attention_norm(x)
//                              x + w2(silu(w1 n) * w3 n),                            n = ffn_norm(x)
//     norm, output             (batch, seq, vocab_size)
//
// Touvron et al., 2023; rotary positions: Su et al., 2021, on neighbouring elements (2i, 2i + 1); grouped
// queries: Ainslie et al., 2023: query head h attends to key head h / (n_heads / n_kv_heads).
//
// State dict: tok_embeddings.weight, layers.0.attention.{wq, wk, wv, wo}.weight (out, in),
// layers.0.feed_forward.{w1, w2, w3}.weight, layers.0.attention_norm.weight, layers.0.ffn_norm.weight, ...,
// norm.weight, output.weight. Hidden states have the parameters' dtype; in half precision rotations are
// computed in float32. The loss is the cross entropy of the next tokens; negative targets are ignored. With step
// size dt a block computes y = x + dt attention(x), then y + dt feed_forward(y). With a cache
// (models/key_value_cache.h) the tokens continue the positions that it holds. The root unit holds tok_embeddings, norm
// and output. Initial values: normal with standard deviation 1 for the embedding, 0.02 for wq, wk, wv and w1,
// 0.02 / sqrt(2 (layer + 1)) for wo, w2 and w3, and dim^-1/2, truncated at three standard deviations, for the head;
// norms 1. Local, unless layers are split.
#ifndef PLAIT_MODELS_LLAMA_LLAMA_H_
#define PLAIT_MODELS_LLAMA_LLAMA_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/llama/options.h"
#include "models/split_module_model.h"
#include "parallel/tensor/values.h"

namespace plait::transformer {
struct Norm;
}

namespace plait::llama {

class Llama final : public models::SplitModuleModel {
 public:
  // On the meta device no memory is allocated for parameters and nothing is drawn; the rotary tables are on the CPU.
  // Aborts if Validate(options) fails.
  Llama(const LlamaOptions& options, const at::TensorOptions& tensor_options);

  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  std::string Description() const override;
  // Splits attention by heads, feed-forward by its hidden width, embedding and head by vocabulary. If the number of key
  // heads is not a multiple of the ranks, wk and wv are replicated.
  std::vector<tensor_parallel::SplitGroup> SplitGroups(int ranks) override;

  const LlamaOptions& options() const { return options_; }

 private:
  // Hidden states -> (batch seq, this rank's part of vocab_size).
  tensor_parallel::Shard<1> Logits(const at::Tensor& hidden) const;

  LlamaOptions options_;
  tensor_parallel::TensorAxis embedding_axis_, output_axis_;
  at::Tensor tok_embeddings_, output_;
  std::shared_ptr<const transformer::Norm> norm_;
};

// Number of parameters, without building a model.
std::int64_t ParameterCount(const LlamaOptions& options);

// FLOPs per token of a training step, forward and backward: 6 N + 12 L H Q T (PaLM, appendix B), with N parameters
// without the embedding, H Q = dim and T = seq.
double FlopsPerToken(const LlamaOptions& options, std::int64_t seq);

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_LLAMA_H_
