#include "parallel/activation_checkpoint/activation_checkpoint.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <utility>

namespace plait::parallel {
namespace {

using torch::autograd::variable_list;

// States of the generators that a block on `device` may draw from.
class GeneratorStates {
 public:
  explicit GeneratorStates(const at::Device& device) : devices_({at::Device(at::kCPU)}) {
    if (!device.is_cpu()) devices_.push_back(device);
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

class BlockBackward final : public torch::autograd::Node {
 public:
  BlockBackward(BlockForward forward, const at::Tensor& input)
      : Node(torch::autograd::collect_next_edges(input)),
        forward_(std::move(forward)),
        input_(input, /*is_output=*/false),
        states_(input.device()) {}

  variable_list apply(variable_list&& gradients) override {
    const at::Tensor gradient = gradients[0];
    if (!gradient.defined()) return {at::Tensor()};
    const at::Tensor saved = input_.unpack();
    const at::Tensor input = saved.detach().requires_grad_(saved.requires_grad());
    const at::Tensor output = Repeat(input);
    // Parameters get theirs here; the engine may be entered again from within.
    if (output.requires_grad()) torch::autograd::backward({output}, {gradient});
    return {input.grad()};
  }

  void release_variables() override { input_.reset_data(); }
  std::string name() const override { return "CheckpointActivationsBackward"; }

 private:
  at::Tensor Repeat(const at::Tensor& input) const {
    const GeneratorStates now(input.device());
    states_.Restore();
    const at::AutoGradMode recording(true);
    const at::Tensor output = forward_(input);
    now.Restore();
    return output;
  }

  BlockForward forward_;
  torch::autograd::SavedVariable input_;
  GeneratorStates states_;
};

}  // namespace

at::Tensor CheckpointActivations(const BlockForward& forward, const at::Tensor& input) {
  if (!at::GradMode::is_enabled()) return forward(input);
  const auto node = std::make_shared<BlockBackward>(forward, input);
  at::Tensor output;
  {
    const at::NoGradGuard not_recorded;
    // Detached: a block may give its input, or a view that autograd would take for one that it did not see.
    output = forward(input).detach();
  }
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace plait::parallel
