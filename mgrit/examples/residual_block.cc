// Your own residual block, made layer-parallel and trained: 64 layers on two spirals (synthetic data).
//
//   bazel run //mgrit/examples:residual_block -- --nproc=2
#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>
#include <memory>

#include "absl/flags/flag.h"
#include "comm/session.h"
#include "mgrit/examples/example_main.h"
#include "mgrit/layer_parallel/layer_parallel.h"

ABSL_FLAG(int, layers, 64, "residual blocks");
ABSL_FLAG(int, levels, 2, "levels of the grid of layers");
ABSL_FLAG(int, cfactor, 4, "coarsening factor");
ABSL_FLAG(int, batches, 200, "optimizer steps");

namespace plait::mgrit::examples {
namespace {

constexpr int kWidth = 8;

// u + dt tanh(W u + b): everything that a layer-parallel network needs to know of its block.
struct ResidualBlock : models::Block {
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    return {in.hidden + context.dt * torch::tanh(linear->forward(in.hidden))};
  }
  std::vector<at::Tensor> Parameters() const override { return linear->parameters(); }
  torch::nn::Linear linear{kWidth, kWidth};
};

struct Spirals {
  at::Tensor x, y;  // (batch, 2), (batch)
};

Spirals MakeSpirals(int points) {
  const at::Tensor turn = torch::rand({points}).sqrt() * 6.0;
  const at::Tensor arm = torch::randint(2, {points}, at::kLong);
  const at::Tensor angle = turn + arm * 3.14159265;
  return {torch::stack({turn * angle.cos(), turn * angle.sin()}, 1) / 6.0, arm};
}

absl::Status Train(comm::Session& session) {
  at::set_num_threads(1);
  torch::manual_seed(1);  // the same numbers on every rank
  torch::nn::Linear open(2, kWidth), head(kWidth, 2);
  LayerParallelOptions options =
      MakeLayerParallelOptions(absl::GetFlag(FLAGS_levels), absl::GetFlag(FLAGS_cfactor), 2, 2);
  const int layers = absl::GetFlag(FLAGS_layers);
  if (absl::Status fits = LayerParallel::Check(options, layers); !fits.ok()) return fits;
  LayerParallel net(
      session.world(),
      [](std::int64_t layer) {
        torch::manual_seed(100 + layer);
        return std::make_shared<ResidualBlock>();
      },
      layers, /*final_time=*/8.0, options);

  std::vector<at::Tensor> parameters = net.Parameters();  // of this rank's layers; ends are on every rank
  for (const auto& end : {open, head}) {
    for (const at::Tensor& parameter : end->parameters()) parameters.push_back(parameter);
  }
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(5e-3));
  torch::manual_seed(2);
  for (int batch = 1; batch <= absl::GetFlag(FLAGS_batches); ++batch) {
    const Spirals data = MakeSpirals(256);
    adam.zero_grad();
    const at::Tensor scores = head->forward(net.Forward(open->forward(data.x)));
    const at::Tensor loss = torch::nn::functional::cross_entropy(scores, data.y);
    loss.backward();
    adam.step();
    if (session.world().rank() != 0 || (batch % 20 != 0 && batch != 1)) continue;
    const double right =
        scores.argmax(1).eq(data.y).sum().item<double>() / static_cast<double>(data.y.size(0));
    std::printf(
        "batch %3d  loss %.6f  accuracy %5.1f %%  forward |r| = %.3e  backward |r| = %.3e  (synthetic "
        "data)\n",
        batch, loss.item<double>(), 100 * right, net.last_forward().last_residual_norm(),
        net.last_backward().last_residual_norm());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  const plait::base::ToolUsage usage = {.name = "residual_block",
                                        .summary = "Trains a layer-parallel network of residual blocks.",
                                        .examples = {"residual_block --nproc=2 --layers=64 --levels=3"}};
  return plait::mgrit::examples::RunExample(argc, argv, usage, plait::mgrit::examples::Train);
}
