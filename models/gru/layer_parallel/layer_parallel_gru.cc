#include "models/gru/layer_parallel/layer_parallel_gru.h"

#include <utility>

namespace plait::gru {

LayerParallelGru::LayerParallelGru(GruStep::ParameterList parameters, const GruConfig& config,
                                   const at::TensorOptions& tensor_options, comm::Communicator communicator,
                                   std::int64_t steps, double final_time,
                                   const mgrit::LayerParallelOptions& options,
                                   const GruStepOptions& step_options, const StepDecorator& decorate)
    : step_(
          std::make_shared<GruStep>(NewGruCell(config, tensor_options), std::move(parameters), step_options)),
      solver_(std::move(communicator), decorate ? decorate(step_) : step_, steps, final_time, options) {}

at::Tensor LayerParallelGru::Forward(const at::Tensor& x, const at::Tensor& initial) {
  step_->SetInput(x);
  return solver_.Forward(initial.defined() ? initial : step_->cell().NewState(x.size(0)));
}

}  // namespace plait::gru
