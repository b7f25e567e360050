// The parts of a vision transformer that hold parameters: private to vit.h.
//
// Module and parameter names are those of timm's state dict; weights of linear layers are (out, in).
#ifndef PLAIT_MODELS_VIT_BLOCK_H_
#define PLAIT_MODELS_VIT_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "models/block_model.h"
#include "models/vit/options.h"

namespace torch::nn {
class Module;
}

namespace plait::vit {

// A new, empty submodule `name`.
std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name);

// Parameters are registered with a new module `name` of `parent`.
struct Norm {
  Norm(torch::nn::Module& parent, const std::string& name, const VitOptions& options,
       const at::TensorOptions& tensor_options);
  // (rows, dim), normalized row by row.
  at::Tensor Forward(const at::Tensor& rows) const;
  void Reset() const;

  at::Tensor weight, bias;
  double eps;
};

struct Linear {
  Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
         bool with_bias, const at::TensorOptions& tensor_options);
  at::Tensor Forward(const at::Tensor& rows) const;
  void Reset() const;

  at::Tensor weight, bias;  // bias undefined where there is none
};

// x + dt attention(norm1(x)), then that + dt mlp(norm2(that)).
class Block final : public models::Block {
 public:
  // Its parameters belong to `module`, whose mode says whether dropout acts.
  Block(std::shared_ptr<torch::nn::Module> module, const VitOptions& options,
        const at::TensorOptions& tensor_options);

  // Hidden states (batch, tokens, dim).
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override;
  std::vector<at::Tensor> Parameters() const override;
  void ResetParameters() const;

 private:
  at::Tensor Attend(const at::Tensor& rows, std::int64_t batch) const;
  // residual + dt projection(rows).
  at::Tensor AddProjected(const at::Tensor& residual, const at::Tensor& rows, const Linear& projection,
                          double dt) const;
  bool dropping() const;

  VitOptions options_;
  // Below `module_`; parameters in the order of the state dict.
  std::shared_ptr<torch::nn::Module> module_;
  Norm norm1_;
  std::shared_ptr<torch::nn::Module> attn_;
  Linear qkv_, proj_;
  Norm norm2_;
  std::shared_ptr<torch::nn::Module> mlp_;
  Linear fc1_, fc2_;
};

// Normal numbers of mean 0 and deviation 0.02, drawn in float32 from LibTorch's CPU generator whatever type
// and device `parameter` has. Does nothing on the meta device.
void DrawNormal(const at::Tensor& parameter);
// Does nothing for undefined tensors and on the meta device.
void Fill(const at::Tensor& parameter, double value);

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_BLOCK_H_
