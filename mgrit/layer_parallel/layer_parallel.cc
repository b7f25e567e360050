#include "mgrit/layer_parallel/layer_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "mgrit/layer_parallel/engine.h"

namespace plait::mgrit {

// Enters the two solves into autograd as one function of u_0 and the parameters.
class LayerParallel::Function : public torch::autograd::Function<LayerParallel::Function> {
 public:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<Engine> held) : engine(std::move(held)) {}
    std::shared_ptr<Engine> engine;
  };

  static at::Tensor forward(torch::autograd::AutogradContext* context, const std::shared_ptr<Engine>& engine,
                            const at::Tensor& u_0, at::TensorList /*parameters*/) {
    context->saved_data["engine"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(engine));
    context->saved_data["wants_input_gradient"] = u_0.requires_grad();
    return engine->Forward(u_0, /*differentiable=*/true);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list output_gradients) {
    const auto capsule = context->saved_data["engine"].toCapsule();
    Engine& engine = *static_cast<Holder*>(capsule.get())->engine;
    torch::autograd::variable_list gradients =
        engine.Backward(output_gradients[0], context->saved_data["wants_input_gradient"].toBool());
    gradients.insert(gradients.begin(), at::Tensor());  // the engine itself
    return gradients;
  }
};

LayerParallelOptions MakeLayerParallelOptions(int levels, int cfactor, int forward_iterations,
                                              int backward_iterations) {
  LayerParallelOptions options;
  options.forward.max_levels = levels;
  options.forward.cfactors = {cfactor};
  options.forward.cf_sweeps = {0, 1};
  options.forward.skip_downcycle = true;
  options.backward = options.forward;
  options.forward.max_iterations = forward_iterations;
  options.backward.max_iterations = backward_iterations;
  return options;
}

LayerParallel::LayerParallel(comm::Communicator communicator, const BlockFactory& make_block,
                             std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : LayerParallel(std::move(communicator), std::make_shared<BlockStep>(make_block), steps, final_time,
                    options) {}

LayerParallel::LayerParallel(comm::Communicator communicator, std::shared_ptr<Block> shared_block,
                             std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : LayerParallel(std::move(communicator), std::make_shared<BlockStep>(std::move(shared_block)), steps,
                    final_time, options) {}

LayerParallel::LayerParallel(comm::Communicator communicator, std::shared_ptr<TensorStep> step,
                             std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : engine_(
          std::make_shared<Engine>(std::move(communicator), std::move(step), steps, final_time, options)) {}

LayerParallel::~LayerParallel() = default;

absl::Status LayerParallel::Check(const LayerParallelOptions& options, std::int64_t steps) {
  if (options.forward.cfactors != options.backward.cfactors ||
      options.forward.max_levels != options.backward.max_levels) {
    return absl::InvalidArgumentError("the forward and the backward solve need the same levels and factors");
  }
  const absl::Status forward = Validate(options.forward, steps);
  return forward.ok() ? Validate(options.backward, steps) : forward;
}

at::Tensor LayerParallel::Forward(const at::Tensor& u_0) {
  if (!at::GradMode::is_enabled()) return engine_->Forward(u_0, /*differentiable=*/false);
  const std::vector<at::Tensor> parameters = Parameters();
  return Function::apply(engine_, u_0, at::TensorList(parameters));
}

std::vector<at::Tensor> LayerParallel::Parameters() const { return engine_->step().Parameters(); }
std::int64_t LayerParallel::first_step() const { return engine_->first_step(); }
std::int64_t LayerParallel::last_step() const { return engine_->last_step(); }
const Solution& LayerParallel::last_forward() const { return engine_->last_forward(); }
const Solution& LayerParallel::last_backward() const { return engine_->last_backward(); }

void LayerParallel::set_iterations(int forward, int backward) { engine_->set_iterations(forward, backward); }

}  // namespace plait::mgrit
