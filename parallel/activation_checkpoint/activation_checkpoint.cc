#include "parallel/activation_checkpoint/activation_checkpoint.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <utility>

namespace plait::parallel {
namespace {

using models::BlockState;
using torch::autograd::variable_list;

// The states of the random generators that a block on `device` may use.
class GeneratorStates {
 public:
  explicit GeneratorStates(const at::Device& device) : devices_({at::Device(at::kCPU)}) {
    if (!device.is_cpu() && !device.is_meta()) devices_.push_back(device);
    for (const at::Device& one : devices_) {
      at::Generator generator = at::globalContext().defaultGenerator(one);
      const std::lock_guard<std::mutex> lock(generator.mutex());
      states_.push_back(generator.get_state());
    }
  }

  void Restore() const {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      at::Generator generator = at::globalContext().defaultGenerator(devices_[i]);
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(states_[i]);
    }
  }

 private:
  std::vector<at::Device> devices_;
  std::vector<at::Tensor> states_;
};

using torch::autograd::SavedVariable;

// Defined tensors of a state, in order.
variable_list TensorsOf(const BlockState& state) {
  variable_list tensors = {state.hidden};
  if (state.auxiliary_loss.defined()) tensors.push_back(state.auxiliary_loss);
  return tensors;
}

BlockState StateOf(const variable_list& tensors) {
  return {tensors[0], tensors.size() > 1 ? tensors[1] : at::Tensor()};
}

class BlockBackward final : public torch::autograd::Node {
 public:
  BlockBackward(RepeatableForward forward, const BlockState& input)
      : Node(torch::autograd::collect_next_edges(TensorsOf(input))),
        forward_(std::move(forward)),
        states_(input.hidden.device()) {
    for (const at::Tensor& tensor : TensorsOf(input)) inputs_.emplace_back(tensor, /*is_output=*/false);
  }

  variable_list apply(variable_list&& gradients) override {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "CheckpointActivations: its gradient cannot be differentiated again");
    variable_list inputs;
    for (const SavedVariable& saved : inputs_) {
      const at::Tensor tensor = saved.unpack();
      inputs.push_back(tensor.detach().requires_grad_(tensor.requires_grad()));
    }
    const variable_list all = TensorsOf(Repeat(StateOf(inputs)));
    variable_list outputs, given;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!gradients[i].defined() || !all[i].requires_grad()) continue;
      outputs.push_back(all[i]);
      given.push_back(gradients[i]);
    }
    // Accumulates the gradients of parameters; autograd's engine is reentrant.
    if (!outputs.empty()) torch::autograd::backward(outputs, given);
    variable_list results;
    for (const at::Tensor& input : inputs) results.push_back(input.grad());
    return results;
  }

  void release_variables() override {
    for (SavedVariable& saved : inputs_) saved.reset_data();
  }
  std::string name() const override { return "CheckpointActivationsBackward"; }

 private:
  BlockState Repeat(const BlockState& input) const {
    const GeneratorStates now(input.hidden.device());
    states_.Restore();
    const at::AutoGradMode recording(true);
    const BlockState output = forward_(input, /*final=*/false);
    now.Restore();
    return output;
  }

  RepeatableForward forward_;
  std::vector<SavedVariable> inputs_;
  GeneratorStates states_;
};

}  // namespace

BlockState CheckpointActivations(const RepeatableForward& forward, const BlockState& input) {
  if (!at::GradMode::is_enabled()) return forward(input, /*final=*/true);
  const auto node = std::make_shared<BlockBackward>(forward, input);
  variable_list outputs;
  {
    const at::NoGradGuard not_recorded;
    // Detached: a block may return its input, or a view whose base autograd did not record.
    for (const at::Tensor& output : TensorsOf(forward(input, /*final=*/true))) {
      outputs.push_back(output.detach());
    }
  }
  torch::autograd::set_history(outputs, node);
  return StateOf(outputs);
}

at::Tensor CheckpointActivations(const std::function<at::Tensor(const at::Tensor&)>& forward,
                                 const at::Tensor& input) {
  const RepeatableForward of_state = [forward](const BlockState& state, bool) {
    return BlockState{forward(state.hidden)};
  };
  return CheckpointActivations(of_state, BlockState{input}).hidden;
}

}  // namespace plait::parallel
