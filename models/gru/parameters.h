// The parameters of a stack of GRU layers as a module: names, sizes, order and initial values of
// torch::nn::GRU, so that state dicts move freely between it, the serial and the layer-parallel module.
//
//   std::shared_ptr<torch::nn::Module> module = plait::gru::NewGruParameters(config, at::kFloat);
//   cell->SetParameters(module->parameters());
//
// weight_ih_l<k> (3 hidden, input or hidden), weight_hh_l<k> (3 hidden, hidden), bias_ih_l<k>, bias_hh_l<k>
// (3 hidden), k = 0 ... layers - 1; gates r, z, n. Initial values are uniform in +-1/sqrt(hidden), drawn in
// the order of the names: after the same at::manual_seed they are torch::nn::GRU's.
#ifndef PLAIT_MODELS_GRU_PARAMETERS_H_
#define PLAIT_MODELS_GRU_PARAMETERS_H_

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/gru/cell.h"

namespace torch::nn {
class Module;
}

namespace plait::gru {

std::shared_ptr<torch::nn::Module> NewGruParameters(const GruConfig& config,
                                                    const at::TensorOptions& options);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_PARAMETERS_H_
