#include "models/gru/cell.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "models/gru/cpu_cell.h"
#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {

GruCell::GruCell(const GruConfig& config, const at::TensorOptions& options)
    : config_(config), options_(options) {
  TORCH_CHECK(config.input > 0 && config.hidden > 0 && config.layers > 0,
              "GruCell: input, hidden and layers must be positive, are ", config.input, ", ", config.hidden,
              ", ", config.layers);
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble, "GruCell: dtype must be float32 or float64, is ",
              dtype);
}

at::Tensor GruCell::NewState(std::int64_t batch) const {
  return at::zeros({config_.layers, batch, config_.hidden}, options_);
}

void GruCell::CheckParameters(at::TensorList parameters) const {
  TORCH_CHECK(static_cast<std::int64_t>(parameters.size()) == 4 * config_.layers,
              "GruCell: ", 4 * config_.layers, " parameters expected, got ", parameters.size());
  const std::int64_t gates = 3 * config_.hidden;
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const at::Tensor* p = &parameters[4 * layer];
    const bool fit = p[0].sizes() == at::IntArrayRef({gates, InputOf(layer)}) &&
                     p[1].sizes() == at::IntArrayRef({gates, config_.hidden}) &&
                     p[2].sizes() == at::IntArrayRef({gates}) && p[3].sizes() == at::IntArrayRef({gates});
    TORCH_CHECK(fit, "GruCell: parameters of layer ", layer, " have the sizes ", p[0].sizes(), ", ",
                p[1].sizes(), ", ", p[2].sizes(), ", ", p[3].sizes(), "; expected (", gates, ", ",
                InputOf(layer), "), (", gates, ", ", config_.hidden, "), (", gates, "), (", gates, ")");
    for (int i = 0; i < 4; ++i) {
      TORCH_CHECK(p[i].dtype() == options_.dtype() && p[i].device().type() == options_.device().type(),
                  "GruCell: parameters are ", p[i].dtype(), " on ", p[i].device(), ", the cell is ",
                  options_.dtype(), " on ", options_.device());
    }
  }
}

void GruCell::CheckInputs(const at::Tensor& x) const {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == config_.input, "GruCell: x must be (batch, steps, ", config_.input,
              "), is ", x.sizes());
  TORCH_CHECK(x.dtype() == options_.dtype() && x.device().type() == options_.device().type(),
              "GruCell: x is ", x.dtype(), " on ", x.device(), ", the cell is ", options_.dtype(), " on ",
              options_.device());
}

std::unique_ptr<GruCell> NewGruCell(const GruConfig& config, const at::TensorOptions& options) {
  if (!options.device().is_cpu()) return NewOperatorGruCell(config, options);
  const bool bfloat16 = config.products == GruProducts::kBFloat16;
  if (options.dtype() != at::kDouble)
    return NewCpuGruCell<float>(config, options, UsableKernels<float>(bfloat16)[0]);
  return NewCpuGruCell<double>(config, options, UsableKernels<double>(bfloat16)[0]);
}

}  // namespace plait::gru
