// One block of the decoder: private to llama.h.
#ifndef PLAIT_MODELS_LLAMA_BLOCK_H_
#define PLAIT_MODELS_LLAMA_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/block_model.h"
#include "models/llama/llama.h"
#include "models/stackable_block.h"
#include "models/transformer/layers.h"
#include "parallel/tensor/linear.h"

namespace plait::llama {

// Tables of rotary positions, (max_seq_len, 1, head width), float64 for float64 models, else float32. x rotated is
// cosines * x + sines * (x with the elements of each pair (2i, 2i + 1) swapped). A model made on the meta device has
// them on the host, and a copy on its own device from the first pass on. Not thread-safe.
struct Rotation {
  Rotation(const LlamaOptions& options, const at::TensorOptions& tensor_options);
  // Rotates x (batch, seq, heads, head width). `positions` (seq) of int64; undefined: first, first + 1, ...
  at::Tensor Apply(const at::Tensor& x, std::int64_t first, const at::Tensor& positions) const;

  at::Tensor cosines, sines;

 private:
  mutable at::Tensor device_cosines_, device_sines_;  // copied once: the host waits for a copy
};

// y = x + dt attention(norm(x)); returns y + dt feed_forward(norm(y)).
class Block final : public models::Block, public models::StackableBlock {
 public:
  // Registers its parameters with `module`.
  Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const LlamaOptions& options,
        std::shared_ptr<const Rotation> rotation, const at::TensorOptions& tensor_options);

  // Hidden states (batch, seq, dim). With a cache they continue the positions that it holds, and their keys and values
  // are appended to its layer context.step.
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override;
  // For blocks of one model, without tensor parallelism, caches and context parallelism.
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override;
  std::vector<at::Tensor> Parameters() const override;
  void ResetParameters(const models::ModuleModel& model) const;
  // `name`: the block's prefix in the state dict, "layers.0".
  std::vector<tensor_parallel::SplitGroup> SplitGroups(const std::string& name, int ranks);

 private:
  bool CanBeStacked(const models::BlockContext& context) const;
  tensor_parallel::Shard<1> Attention(const tensor_parallel::Residual& rows, std::int64_t batch,
                                      const models::BlockContext& context) const;
  // Attention over this rank's heads, (batch, seq, heads, head width) each -> (batch seq, heads width).
  at::Tensor Attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const models::BlockContext& context) const;

  std::shared_ptr<torch::nn::Module> module_;
  std::int64_t layer_;
  LlamaOptions options_;
  std::shared_ptr<const Rotation> rotation_;
  tensor_parallel::TensorAxis attention_axis_, feed_forward_axis_;
  const std::shared_ptr<torch::nn::Module> attention_;
  const transformer::Linear wq_, wk_, wv_, wo_;
  const std::shared_ptr<torch::nn::Module> feed_forward_;
  const transformer::Linear w1_, w2_, w3_;
  const transformer::Norm attention_norm_, ffn_norm_;
};

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_BLOCK_H_
