// The parts of a GPT that hold parameters: private to gpt.h.
//
// Module and parameter names are those of GPT-2's state dict; weights of linear layers are (out, in).
#ifndef PLAIT_MODELS_GPT_BLOCK_H_
#define PLAIT_MODELS_GPT_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/block_model.h"
#include "models/gpt/options.h"
#include "models/split_module_model.h"
#include "parallel/tensor/linear.h"

namespace torch::nn {
class Module;
}

namespace plait::gpt {

// Parameters are registered with a new module `name` of `parent`.
struct Norm {
  Norm(torch::nn::Module& parent, const std::string& name, const GptOptions& options,
       const at::TensorOptions& tensor_options);
  // (rows, n_embd), normalized row by row.
  at::Tensor Forward(const at::Tensor& rows) const;

  at::Tensor weight, bias;  // bias undefined where there is none
};

struct Linear {
  Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
         bool with_bias, const at::TensorOptions& tensor_options);
  tensor_parallel::LinearParameters parameters() const { return {weight, bias}; }

  at::Tensor weight, bias;
};

// A new, empty submodule `name`.
std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name);
// (count, width), registered as `name`.weight.
at::Tensor Embedding(torch::nn::Module& parent, const std::string& name, std::int64_t count,
                     std::int64_t width, const at::TensorOptions& tensor_options);

// x + dt attention(norm(x)), then that + dt mlp(norm(that)).
class Block final : public models::Block {
 public:
  // Its parameters belong to `module`, whose mode says whether dropout acts. `layer`: its number.
  Block(std::shared_ptr<torch::nn::Module> module, std::int64_t layer, const GptOptions& options,
        const at::TensorOptions& tensor_options);

  // Hidden states (batch, seq, n_embd). With a cache they are the positions behind those that it holds, and
  // are added to it as layer context.step.
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override;
  std::vector<at::Tensor> Parameters() const override;
  void ResetParameters(const models::ModuleModel& model) const;
  // `name`: of the block, "transformer.h.0".
  std::vector<tensor_parallel::SplitGroup> SplitGroups(const std::string& name);

 private:
  tensor_parallel::Shard<1> Attention(const tensor_parallel::Residual& rows, std::int64_t batch,
                                      const models::BlockContext& context) const;
  // residual + dt projection(rows).
  tensor_parallel::Residual AddProjected(const tensor_parallel::TensorAxis& axis,
                                         const tensor_parallel::Residual& residual,
                                         const tensor_parallel::Shard<1>& rows, const Linear& projection,
                                         const models::BlockContext& context, std::int64_t batch) const;

  bool dropping() const;
  // Of the probabilities (batch, heads of this rank, seq, seq).
  at::Tensor DropProbabilities(const at::Tensor& probabilities, const models::RandomContext& random) const;

  std::int64_t layer_;
  GptOptions options_;
  tensor_parallel::TensorAxis attention_axis_, mlp_axis_;
  // Below `module_`; parameters in the order of the state dict.
  std::shared_ptr<torch::nn::Module> module_;
  Norm ln_1_;
  std::shared_ptr<torch::nn::Module> attn_;
  Linear attention_in_, attention_out_;
  Norm ln_2_;
  std::shared_ptr<torch::nn::Module> mlp_;
  Linear mlp_in_, mlp_out_;
};

// Dropout of rows of the residual stream, (rows of this rank, n_embd) of a batch (batch, seq): `site` names the
// place, such as "embedding".
tensor_parallel::Residual DropRows(const tensor_parallel::TensorAxis& axis, const tensor_parallel::Residual& rows,
                                   std::int64_t batch, double probability, const models::RandomContext& random,
                                   const char* site, std::int64_t layer);

// Standard deviation of initial weights, as in GPT-2.
inline constexpr double kInitialDeviation = 0.02;

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_BLOCK_H_
