// The parameters of a stack of GRU layers as a module, with the names, shapes and order of torch::nn::GRU: state dicts
// are interchangeable with it, and between the serial and the layer-parallel module.
//
//   std::shared_ptr<torch::nn::Module> module = plait::gru::NewGruParameters(config, at::kFloat);
//   cell->SetParameters(module->parameters());
//
// weight_ih_l<k> (3 hidden, input or hidden), weight_hh_l<k> (3 hidden, hidden), bias_ih_l<k>, bias_hh_l<k>
// (3 hidden), k = 0 ... layers - 1; gates r, z, n. Initial values are uniform, drawn in the order of the
// names, in float32 from LibTorch's CPU generator whatever dtype and device the parameters have. Classic: in
// +-1/sqrt(hidden); after the same at::manual_seed they equal torch::nn::GRU's. Implicit (Moon and Cyr, ICLR 2022):
// every product is initialized as a torch::nn::Linear of its own: weight_ih and bias_ih in +-1/sqrt(input or hidden),
// the others in +-1/sqrt(hidden), and bias_hh of r and z is zero.
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

// Draws the initial values of `parameters`, given in the order of GruCell::SetParameters. Does nothing on the meta
// device.
void DrawGruParameters(const GruConfig& config, const std::vector<at::Tensor>& parameters);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_PARAMETERS_H_
