// Layers of transformers: norms, linear layers, embeddings, and dropout of the residual stream.
//
// Weights of linear layers are (out, in). Rows are those of the residual stream (parallel/tensor/values.h): the
// flattened tokens (batch, seq). Local, unless layers are split.
#ifndef PLAIT_MODELS_TRANSFORMER_LAYERS_H_
#define PLAIT_MODELS_TRANSFORMER_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/block_model.h"
#include "models/module_model.h"
#include "parallel/tensor/linear.h"
#include "parallel/tensor/values.h"

namespace torch::nn {
class Module;
}

namespace plait::transformer {

// Registers and returns a new, empty submodule `name`.
std::shared_ptr<torch::nn::Module> Container(torch::nn::Module& parent, const std::string& name);
// Registers an uninitialized parameter (count, width) as `name`.weight and returns it.
at::Tensor Embedding(torch::nn::Module& parent, const std::string& name, std::int64_t count,
                     std::int64_t width, const at::TensorOptions& tensor_options);

// kRms: divides by the root mean square of the row, without a bias (Zhang and Sennrich, arXiv:1910.07467).
enum class NormKind { kLayer, kRms };

// Registers its parameters with a new submodule `name` of `parent`. Reset() draws initial values: weight 1, bias 0.
struct Norm {
  Norm(torch::nn::Module& parent, const std::string& name, std::int64_t width, bool with_bias,
       double norm_eps, const at::TensorOptions& tensor_options, NormKind norm_kind = NormKind::kLayer);
  // (rows, width), normalized row by row.
  at::Tensor Forward(const at::Tensor& rows) const;
  tensor_parallel::Residual Forward(const tensor_parallel::Residual& rows) const;
  void Reset() const;

  at::Tensor weight, bias;  // bias: undefined without one
  double eps;
  NormKind kind;
};

struct Linear {
  Linear(torch::nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
         bool with_bias, const at::TensorOptions& tensor_options);
  tensor_parallel::LinearParameters parameters() const { return {weight, bias}; }
  // Normal weights with standard deviation `deviation`, biases 0.
  void Reset(const models::ModuleModel& model, double deviation) const;

  at::Tensor weight, bias;
};

// The indices, (rows) int64, of the tokens of this rank's `rows` rows in the flattened global batch (samples, whole
// sequence).
at::Tensor TokenIndices(const tensor_parallel::TensorAxis& axis, std::int64_t rows, std::int64_t batch,
                        const models::RandomContext& random, const models::SequencePart& sequence,
                        at::Device device);

// Dropout of rows. The mask is a function of `random`, `site` (such as "embedding"), `layer` and each element's global
// index: bitwise identical for any number of ranks.
tensor_parallel::Residual DropRows(const tensor_parallel::TensorAxis& axis,
                                   const tensor_parallel::Residual& rows, std::int64_t batch,
                                   double probability, const models::RandomContext& random,
                                   const models::SequencePart& sequence, const char* site,
                                   std::int64_t layer);
// The seed of a dropout mask in this step.
std::uint64_t MaskSeed(const models::RandomContext& random, const char* site, std::int64_t layer);

}  // namespace plait::transformer

#endif  // PLAIT_MODELS_TRANSFORMER_LAYERS_H_
