// The parameters of a stack of GRU layers as a module: names, sizes and order of torch::nn::GRU, so that
// state dicts move freely between it, the serial and the layer-parallel module.
//
//   std::shared_ptr<torch::nn::Module> module = plait::gru::NewGruParameters(config, at::kFloat);
//   cell->SetParameters(module->parameters());
//
// weight_ih_l<k> (3 hidden, input or hidden), weight_hh_l<k> (3 hidden, hidden), bias_ih_l<k>, bias_hh_l<k>
// (3 hidden), k = 0 ... layers - 1; gates r, z, n. Initial values are uniform, drawn in the order of the
// names, in float32 from LibTorch's CPU generator whatever type and device the parameters have. Classic: in
// +-1/sqrt(hidden); after the same at::manual_seed they are torch::nn::GRU's. Implicit: as published (Moon
// and Cyr, ICLR 2022), each product being a linear map of its own: weight_ih and bias_ih in
// +-1/sqrt(input or hidden), the others in +-1/sqrt(hidden), and no bias_hh for r and z: zero.
#ifndef PLAIT_MODELS_GRU_PARAMETERS_H_
#define PLAIT_MODELS_GRU_PARAMETERS_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/gru/cell.h"

namespace torch::nn {
class Module;
}

namespace plait::gru {

std::shared_ptr<torch::nn::Module> NewGruParameters(const GruConfig& config,
                                                    const at::TensorOptions& options);

// Draws initial values into parameters in the order of the names. Does nothing on the meta device.
void DrawGruParameters(const GruConfig& config, const std::vector<at::Tensor>& parameters);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_PARAMETERS_H_
