// The parts of a GPT that hold parameters: private to gpt.h.
//
// Module and parameter names are those of GPT-2's state dict; weights of linear layers are (out, in).
#ifndef PLAIT_MODELS_GPT_BLOCK_H_
#define PLAIT_MODELS_GPT_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <string>

#include "models/gpt/key_value_cache.h"
#include "models/gpt/options.h"

namespace torch::nn {
class Module;
}

namespace plait::gpt {

// Parameters are registered with a new module `name` of `parent`.
struct Norm {
  Norm(torch::nn::Module& parent, const std::string& name, const GptOptions& options,
       const at::TensorOptions& tensor_options);
  // (rows, n_embd), normalised row by row.
  at::Tensor Forward(const at::Tensor& rows) const;

  at::Tensor weight, bias;  // bias undefined where there is none
};

struct Linear {
  Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
         bool with_bias, const at::TensorOptions& tensor_options);
  at::Tensor Forward(const at::Tensor& rows) const;

  at::Tensor weight, bias;
};

// The module of parameters `name`, empty.
std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name);
// (count, width), registered as `name`.weight.
at::Tensor Embedding(torch::nn::Module& parent, const std::string& name, std::int64_t count,
                     std::int64_t width, const at::TensorOptions& tensor_options);

// x + attention(norm(x)), then that + mlp(norm(that)).
class Block {
 public:
  // Its parameters belong to `module`, whose mode says whether dropout acts.
  Block(std::shared_ptr<torch::nn::Module> module, const GptOptions& options,
        const at::TensorOptions& tensor_options);

  // (batch, seq, n_embd) -> the same. With a cache, x are the positions behind those that it holds, and it
  // takes them as layer `layer`.
  at::Tensor Forward(const at::Tensor& x, std::size_t layer, KeyValueCache* cache) const;
  void ResetParameters() const;

 private:
  at::Tensor Attention(const at::Tensor& rows, std::int64_t batch, std::size_t layer,
                       KeyValueCache* cache) const;
  at::Tensor AddProjected(const at::Tensor& residual, const at::Tensor& rows, const Linear& projection) const;

  bool dropping() const;

  GptOptions options_;
  // Below `module_`; parameters in the order of the state dict.
  std::shared_ptr<torch::nn::Module> module_;
  Norm ln_1_;
  std::shared_ptr<torch::nn::Module> attn_;
  Linear attention_in_, attention_out_;
  Norm ln_2_;
  std::shared_ptr<torch::nn::Module> mlp_;
  Linear mlp_in_, mlp_out_;
};

// Standard deviation 0.02 for what is not told otherwise, as GPT-2.
inline constexpr double kInitialDeviation = 0.02;

// Normal numbers of mean 0, drawn in float32 by LibTorch's generator of the CPU whatever type and device
// `parameter` has. Nothing for kMeta.
void DrawNormal(const at::Tensor& parameter, double deviation);
// Nothing for an undefined tensor.
void Fill(const at::Tensor& parameter, double value);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_BLOCK_H_
