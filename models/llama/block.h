// One block of the decoder: private to llama.h.
#ifndef PLAIT_MODELS_LLAMA_BLOCK_H_
#define PLAIT_MODELS_LLAMA_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/llama/llama.h"

namespace plait::llama {

// Cosines and sines of all positions, (max_seq_len, 1, head width): x rotated is
// cosines * x + sines * (x with the elements of each pair swapped).
struct Rotation {
  Rotation(const LlamaOptions& options, const at::TensorOptions& tensor_options);
  // (batch, seq, heads, head width) -> the same.
  at::Tensor Apply(const at::Tensor& x) const;

  at::Tensor cosines, sines;
};

// A new module `name` of `parent`, and the parameter `weight` in such a module.
std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name);
at::Tensor Weight(torch::nn::Module& parent, const std::string& name, at::IntArrayRef shape,
                  const at::TensorOptions& tensor_options);

class Block {
 public:
  // Its parameters belong to `module`.
  Block(torch::nn::Module& module, std::int64_t layer, const LlamaOptions& options,
        const at::TensorOptions& tensor_options);

  // (batch, seq, dim) -> the same.
  at::Tensor Forward(const at::Tensor& x, const Rotation& rotation) const;
  void ResetParameters() const;

 private:
  at::Tensor Attention(const at::Tensor& rows, std::int64_t batch, const Rotation& rotation) const;

  LlamaOptions options_;
  std::int64_t layer_;
  at::Tensor wq_, wk_, wv_, wo_, w1_, w2_, w3_, attention_norm_, ffn_norm_;
};

// (rows, dim) divided by its root mean square, row by row, times `weight`.
at::Tensor Normalised(const at::Tensor& rows, const at::Tensor& weight, double eps);

// Normal numbers of mean 0, cut at `cut` deviations where that is positive, drawn in float32 by LibTorch's
// generator of the CPU whatever type and device `parameter` has. Nothing for kMeta.
void Draw(const at::Tensor& parameter, double deviation, double cut = 0);
void FillWithOnes(const at::Tensor& parameter);

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_BLOCK_H_
