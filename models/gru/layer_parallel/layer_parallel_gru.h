// The GRU solved layer-parallel: drop-in for the serial module, whose parameters it shares.
//
//   const GruConfig config = {.input = 9, .hidden = 100, .layers = 2, .kind = GruKind::kImplicit};
//   LayerParallelGru parallel(serial_parameters, config, at::kFloat, comm, /*steps=*/128,
//                             /*final_time=*/128.0, options);
//   at::Tensor h_end = parallel.Forward(x);                       // (layers, batch, hidden)
//
// Several recorded passes may wait for their backward, as for mgrit::LayerParallel.
#ifndef PLAIT_MODELS_GRU_LAYER_PARALLEL_LAYER_PARALLEL_GRU_H_
#define PLAIT_MODELS_GRU_LAYER_PARALLEL_LAYER_PARALLEL_GRU_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/gru/cell.h"
#include "models/gru/layer_parallel/gru_step.h"

namespace plait::gru {

class LayerParallelGru {
 public:
  // What stands between the solver and the step: something that times or records its calls, say.
  using StepDecorator = std::function<std::shared_ptr<mgrit::TensorStep>(std::shared_ptr<mgrit::TensorStep>)>;

  // `parameters`: gives the current ones, as GruCell::SetParameters orders them; float32 or float64 by
  // `options`. Collective. The settings fit `steps` (mgrit::LayerParallel::Check), else the program ends.
  LayerParallelGru(GruStep::ParameterList parameters, const GruConfig& config,
                   const at::TensorOptions& tensor_options, comm::Communicator communicator,
                   std::int64_t steps, double final_time, const mgrit::LayerParallelOptions& options,
                   const GruStepOptions& step_options = {}, const StepDecorator& decorate = nullptr);

  // Collective. x: (batch, steps, input) with the steps of the solver, and `initial`: (layers, batch,
  // hidden), zero if not defined; the same on every rank. Other shapes throw c10::Error. The state after the
  // last step, (layers, batch, hidden), recorded by autograd with respect to the parameters, x and `initial`.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& initial = {});

  // Of coarse steps from the next Forward on; not while a recorded pass waits for its backward.
  void set_step_options(const GruStepOptions& options) { step_->set_options(options); }
  mgrit::LayerParallel& solver() { return solver_; }
  const mgrit::LayerParallel& solver() const { return solver_; }

 private:
  std::int64_t steps_;
  std::shared_ptr<GruStep> step_;
  mgrit::LayerParallel solver_;
};

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_LAYER_PARALLEL_LAYER_PARALLEL_GRU_H_
