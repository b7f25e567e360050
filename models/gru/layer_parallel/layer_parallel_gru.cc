#include "models/gru/layer_parallel/layer_parallel_gru.h"

#include <c10/util/Exception.h>

#include <utility>

namespace plait::gru {

LayerParallelGru::LayerParallelGru(GruStep::ParameterList parameters, const GruConfig& config,
                                   const at::TensorOptions& tensor_options, comm::Communicator communicator,
                                   std::int64_t steps, double final_time,
                                   const mgrit::LayerParallelOptions& options,
                                   const GruStepOptions& step_options, const StepDecorator& decorate)
    : steps_(steps),
      step_(
          std::make_shared<GruStep>(NewGruCell(config, tensor_options), std::move(parameters), step_options)),
      solver_(std::move(communicator), decorate ? decorate(step_) : step_, steps, final_time, options) {}

at::Tensor LayerParallelGru::Forward(const at::Tensor& x, const at::Tensor& initial) {
  const GruConfig& config = step_->cell().config();
  TORCH_CHECK(x.dim() == 3 && x.size(1) == steps_ && x.size(2) == config.input,
              "LayerParallelGru: x must be (batch, ", steps_, ", ", config.input, "), is ", x.sizes(),
              "; the solver is set up for sequences of ", steps_, " steps");
  const at::Tensor first = initial.defined() ? initial : step_->cell().NewState(x.size(0));
  TORCH_CHECK(first.sizes() == at::IntArrayRef({config.layers, x.size(0), config.hidden}),
              "LayerParallelGru: initial must be (", config.layers, ", ", x.size(0), ", ", config.hidden,
              "), is ", first.sizes());
  step_->SetInput(x);
  return solver_.Forward(first);
}

}  // namespace plait::gru
