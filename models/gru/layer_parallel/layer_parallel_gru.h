// The GRU solved layer-parallel, with the parameters of the serial module.
//
//   const GruConfig config = {.input = 9, .hidden = 100, .layers = 2, .kind = GruKind::kImplicit};
//   LayerParallelGru parallel(serial_parameters, config, at::kFloat, comm, /*steps=*/128,
//                             /*final_time=*/128.0, options);
//   at::Tensor h_end = parallel.Forward(x);                       // (layers, batch, hidden)
//
// Several recorded passes may be waiting for their backward, as with mgrit::LayerParallel.
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
  // Wraps the step before it is given to the solver, for example to time or record its calls.
  using StepDecorator = std::function<std::shared_ptr<mgrit::TensorStep>(std::shared_ptr<mgrit::TensorStep>)>;

  // Collective. `parameters`: returns the current ones, in the order of GruCell::SetParameters, of the dtype (float32
  // or float64) and device of `tensor_options`. Throws c10::Error on all ranks if
  // mgrit::LayerParallel::Check(options, steps) fails.
  LayerParallelGru(GruStep::ParameterList parameters, const GruConfig& config,
                   const at::TensorOptions& tensor_options, comm::Communicator communicator,
                   std::int64_t steps, double final_time, const mgrit::LayerParallelOptions& options,
                   const GruStepOptions& step_options = {}, const StepDecorator& decorate = nullptr);

  // Collective. Returns the state after the last step, (layers, batch, hidden), on every rank, recorded by autograd
  // with respect to the parameters, x and `initial`. x: (batch, steps, input) with the solver's number of steps;
  // `initial`: (layers, batch, hidden), zero if undefined; both the same on every rank. Other shapes throw c10::Error.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& initial = {});

  // Takes effect at the next Forward. Must not be called between a recorded pass and its backward.
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
