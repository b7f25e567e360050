#include "tests/benchmarks/networks_to_relax.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/stackable_block.h"
#include "models/stacked/layers.h"
#include "models/transformer/block.h"

namespace plait::benchmarks {
namespace {

constexpr double kFinalTime = 4;  // of networks of blocks
constexpr std::int64_t kGruInput = 16, kRows = 8, kTokens = 16, kHeads = 4;

at::Tensor Draw(at::IntArrayRef sizes, double deviation, at::Device device) {
  return (at::randn(sizes, at::kFloat) * deviation).to(device);
}

// u + dt tanh(W u + b), W a matrix or a convolution of width 3.
struct Layer final : models::Block, models::StackableBlock {
  Layer(bool convolution, std::int64_t width, at::Device device)
      : is_convolution(convolution), bias(Draw({width}, 0.1, device)) {
    const double deviation = 1 / std::sqrt(static_cast<double>(convolution ? 9 * width : width));
    weight =
        convolution ? Draw({width, width, 3, 3}, deviation, device) : Draw({width, width}, deviation, device);
  }
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    const at::Tensor product =
        is_convolution ? at::conv2d(in.hidden, weight, bias, 1, 1) : at::linear(in.hidden, weight, bias);
    return {at::add(in.hidden, at::tanh(product), context.dt)};
  }
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
    std::vector<at::Tensor> weights, biases, inputs;
    std::vector<double> steps;
    for (const models::BlockCall& call : calls) {
      const auto& layer = static_cast<const Layer&>(*call.block);
      weights.push_back(layer.weight);
      biases.push_back(layer.bias);
      inputs.push_back(call.hidden);
      steps.push_back(call.context.dt);
    }
    const at::Tensor u = stacked::Stacked(inputs), w = stacked::Stacked(weights),
                     b = stacked::Stacked(biases);
    const at::Tensor product =
        is_convolution ? stacked::Convolution(u, w, b, /*padding=*/1) : stacked::Linear(u, w, b);
    return stacked::AddScaled(u, at::tanh(product), steps).unbind(0);
  }
  std::vector<at::Tensor> Parameters() const override { return {weight, bias}; }

  bool is_convolution;
  at::Tensor weight, bias;
};

// A block that is taken together with others, or never.
struct Chosen final : models::Block, models::StackableBlock {
  Chosen(std::shared_ptr<models::Block> block, bool together) : inner(std::move(block)), many(together) {}
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    return inner->Forward(in, context);
  }
  bool PrefersMany(at::Device) const override { return many; }
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
    std::vector<models::BlockCall> of_inner(calls.begin(), calls.end());
    for (models::BlockCall& call : of_inner) call.block = static_cast<const Chosen&>(*call.block).inner.get();
    std::vector<at::Tensor> results = dynamic_cast<models::StackableBlock&>(*inner).ForwardMany(of_inner);
    PLAIT_CHECK(!results.empty()) << "blocks that cannot be taken together";
    return results;
  }
  std::vector<at::Tensor> Parameters() const override { return inner->Parameters(); }

  std::shared_ptr<models::Block> inner;
  bool many;
};

// The same for a step.
class ChosenStep final : public mgrit::TensorStep {
 public:
  ChosenStep(std::shared_ptr<TensorStep> step, bool together) : step_(std::move(step)), many_(together) {}
  std::vector<at::Tensor> Parameters() override { return step_->Parameters(); }
  std::int64_t SharedParameters() const override { return step_->SharedParameters(); }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override { step_->SetOwnSteps(first, last); }
  std::unique_ptr<Tape> NewTape() const override { return step_->NewTape(); }
  void Begin(Tape* tape, const models::BlockContext& context) override { step_->Begin(tape, context); }
  void BeginAdjoint(Tape& tape) override { step_->BeginAdjoint(tape); }
  void Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) override {
    step_->Forward(interval, u, out);
  }
  void ForwardMany(absl::Span<const Task> tasks) override { step_->ForwardMany(tasks); }
  bool PrefersMany() const override { return many_; }
  void Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override {
    step_->Adjoint(interval, u, lambda, out);
  }
  void AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override {
    step_->AddGradients(steps, u, lambda, gradients);
  }

 private:
  std::shared_ptr<TensorStep> step_;
  bool many_;
};

NetworkToRelax Gru(const NetworkSize& size, const mgrit::LayerParallelOptions& options, at::Device device) {
  const gru::GruConfig config = {.input = kGruInput, .hidden = size.hidden};
  const double deviation = 1 / std::sqrt(static_cast<double>(size.hidden));
  const std::int64_t gates = 3 * size.hidden;
  const std::vector<at::Tensor> parameters = {
      Draw({gates, kGruInput}, deviation, device), Draw({gates, size.hidden}, deviation, device),
      Draw({gates}, deviation, device), Draw({gates}, deviation, device)};
  if (device.is_cuda()) {
    // cuDNN copies the parameters in every call unless they are side by side.
    constexpr std::int64_t kGruOfCudnn = 3;
    at::_cudnn_rnn_flatten_weight(parameters, 4, kGruInput, kGruOfCudnn, size.hidden, /*proj_size=*/0,
                                  /*num_layers=*/1, /*batch_first=*/true, /*bidirectional=*/false);
  }
  const at::Tensor x = Draw({size.batch, size.steps, kGruInput}, 1, device);
  const at::TensorOptions tensor_options = at::TensorOptions(at::kFloat).device(device);
  const auto parallel = [&](bool many) -> std::function<at::Tensor()> {
    const auto net = std::make_shared<gru::LayerParallelGru>(
        [parameters] { return parameters; }, config, tensor_options, comm::Communicator::Self(), size.steps,
        static_cast<double>(size.steps), options, gru::GruStepOptions{},
        [many](std::shared_ptr<mgrit::TensorStep> step) { return std::make_shared<ChosenStep>(step, many); });
    return [net, x] { return net->Forward(x); };
  };
  const std::shared_ptr<gru::GruCell> cell = gru::NewGruCell(config, tensor_options);
  cell->SetParameters(parameters);
  const auto serial = [cell, x, size] {
    const gru::GruInputs inputs = cell->PrepareInputs(x);
    at::Tensor state = cell->NewState(size.batch), next = cell->NewState(size.batch);
    for (std::int64_t step = 0; step < size.steps; ++step) {
      cell->Step(1.0, inputs, step, state, next, nullptr);
      std::swap(state, next);
    }
    return state;
  };
  const at::Tensor first = cell->NewState(size.batch);
  const auto by_library = [x, first, parameters] {
    return std::get<1>(at::gru(x, first, parameters, /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0,
                               /*train=*/false, /*bidirectional=*/false, /*batch_first=*/true));
  };
  return {serial, parallel(false), parallel(true), by_library};
}

std::shared_ptr<models::Block> NewBlock(const std::string& kind, const NetworkSize& size, at::Device device) {
  if (kind != "transformer") return std::make_shared<Layer>(kind == "conv", size.hidden, device);
  const transformer::BlockOptions options = {
      .width = size.hidden, .heads = kHeads, .head_width = size.hidden / kHeads, .hidden = 4 * size.hidden};
  const transformer::BlockNames names = {"ln_1", "attn", "c_attn", "c_proj", "ln_2", "mlp", "c_fc", "c_proj"};
  const auto module = std::make_shared<torch::nn::Module>("Layer");
  const auto block = std::make_shared<transformer::Block>(module, 0, options, names,
                                                          at::TensorOptions(at::kFloat).device(device));
  for (const at::Tensor& parameter : block->Parameters()) parameter.normal_(0, 0.05);
  module->eval();
  return block;
}

NetworkToRelax Blocks(const std::string& kind, const NetworkSize& size,
                      const mgrit::LayerParallelOptions& options, at::Device device) {
  std::vector<std::int64_t> sizes = {size.batch, size.hidden};
  if (kind == "conv") sizes = {size.batch, size.hidden, kRows, kRows};
  if (kind == "transformer") sizes = {size.batch, kTokens, size.hidden};
  const at::Tensor u_0 = Draw(sizes, 1, device);
  const auto blocks = std::make_shared<std::vector<std::shared_ptr<models::Block>>>();
  for (std::int64_t step = 0; step < size.steps; ++step) blocks->push_back(NewBlock(kind, size, device));
  const auto parallel = [&](bool many) -> std::function<at::Tensor()> {
    const auto net = std::make_shared<mgrit::LayerParallel>(
        comm::Communicator::Self(),
        [blocks, many](std::int64_t step) -> std::shared_ptr<models::Block> {
          return std::make_shared<Chosen>((*blocks)[step], many);
        },
        size.steps, kFinalTime, options);
    return [net, u_0] { return net->Forward(u_0); };
  };
  const auto serial = [blocks, u_0] {
    at::Tensor u = u_0;
    const double dt = kFinalTime / static_cast<double>(blocks->size());
    for (const auto& block : *blocks) u = block->Forward({u}, {.dt = dt, .final = false}).hidden;
    return u;
  };
  return {serial, parallel(false), parallel(true), nullptr};
}

}  // namespace

std::vector<std::string> NetworkKinds() { return {"gru", "dense", "conv", "transformer"}; }

absl::StatusOr<NetworkToRelax> MakeNetwork(const std::string& kind, const NetworkSize& size,
                                           const mgrit::LayerParallelOptions& options, at::Device device) {
  const std::vector<std::string> kinds = NetworkKinds();
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("network '", kind, "': expected one of ", absl::StrJoin(kinds, ", ")));
  }
  if (kind == "transformer" && size.hidden % kHeads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a transformer of width ", size.hidden, ": expected a multiple of ", kHeads));
  }
  const at::NoGradGuard no_grad;
  return kind == "gru" ? Gru(size, options, device) : Blocks(kind, size, options, device);
}

}  // namespace plait::benchmarks
