#include "parallel/tiling/tiled_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::parallel {
namespace {

// Splits `total` into `parts` sizes that differ by at most one.
std::vector<std::int64_t> Sizes(std::int64_t total, std::int64_t parts) {
  PLAIT_CHECK(parts >= 1 && parts <= total) << parts << " tiles of " << total;
  std::vector<std::int64_t> sizes;
  for (std::int64_t part = 0; part < parts; ++part) {
    sizes.push_back(total * (part + 1) / parts - total * part / parts);
  }
  return sizes;
}

}  // namespace

struct TiledLinear::State {
  TiledLinearOptions options;
  std::vector<std::int64_t> in_sizes, out_sizes;
  std::vector<models::ParameterUnit> units;
  TileRunner runner;
  std::shared_ptr<torch::nn::Module> module;

  const at::Tensor& Weight(std::int64_t o, std::int64_t i) const {
    return units[o * options.in_tiles + i].parameters[0].tensor;
  }
  // Undefined without bias.
  at::Tensor Bias(std::int64_t o) const {
    return options.bias ? units[o * options.in_tiles].parameters[1].tensor : at::Tensor();
  }
  std::size_t BlockOf(std::int64_t o, std::int64_t i) const {
    return options.first_block + static_cast<std::size_t>(o * options.in_tiles + i);
  }
  at::Tensor RunTile(std::int64_t o, std::int64_t i, const at::Tensor& x) const;
  models::ParameterUnit MakeTile(torch::nn::Module& row, std::int64_t o, std::int64_t i,
                                 const at::TensorOptions& tensor_options) const;
};

at::Tensor TiledLinear::State::RunTile(std::int64_t o, std::int64_t i, const at::Tensor& x) const {
  // Captures the handles by value: an engine may call the tile again in backward.
  const models::BlockForward tile =
      [weight = Weight(o, i), bias = i == 0 ? Bias(o) : at::Tensor()](const models::BlockState& input) {
        return models::BlockState{at::linear(input.hidden, weight, bias)};
      };
  return runner ? runner(BlockOf(o, i), tile, {x}).hidden : tile({x}).hidden;
}

// Registers the parameters of tile (o, i) in the module of its row.
models::ParameterUnit TiledLinear::State::MakeTile(torch::nn::Module& row, std::int64_t o, std::int64_t i,
                                                   const at::TensorOptions& tensor_options) const {
  auto tile = row.register_module(absl::StrCat(i), std::make_shared<torch::nn::Module>("Tile"));
  const std::string name = absl::StrCat("tile.", o, ".", i);
  const std::vector<std::int64_t> shape = {out_sizes[o], in_sizes[i]};
  std::vector<std::pair<std::string, at::Tensor>> parameters = {
      {name + ".weight", tile->register_parameter("weight", at::empty(shape, tensor_options))}};
  if (options.bias && i == 0) {
    parameters.emplace_back(absl::StrCat("tile.", o, ".bias"),
                            row.register_parameter("bias", at::empty({out_sizes[o]}, tensor_options)));
  }
  return models::MakeUnit(name, parameters, static_cast<int>(BlockOf(o, i)));
}

TiledLinear::TiledLinear(const TiledLinearOptions& options, const at::TensorOptions& tensor_options)
    : state_(std::make_shared<State>()) {
  state_->options = options;
  state_->in_sizes = Sizes(options.in, options.in_tiles);
  state_->out_sizes = Sizes(options.out, options.out_tiles);
  state_->module = std::make_shared<torch::nn::Module>("TiledLinear");
  // Modules within modules, so that the state dict has the names of the units.
  const auto tiles = state_->module->register_module("tile", std::make_shared<torch::nn::Module>("Tiles"));
  for (std::int64_t o = 0; o < options.out_tiles; ++o) {
    const auto row = tiles->register_module(absl::StrCat(o), std::make_shared<torch::nn::Module>("Row"));
    for (std::int64_t i = 0; i < options.in_tiles; ++i) {
      state_->units.push_back(state_->MakeTile(*row, o, i, tensor_options));
    }
  }
  if (tensor_options.device().is_meta()) return;
  for (std::size_t unit = 0; unit < state_->units.size(); ++unit) ResetParameters(unit);
}

at::Tensor TiledLinear::Forward(const at::Tensor& x) const {
  const TiledLinearOptions& options = state_->options;
  PLAIT_CHECK(x.dim() >= 1 && x.size(-1) == options.in)
      << "input of shape " << x.sizes() << ", expected (..., " << options.in << ")";
  const std::vector<at::Tensor> slices = x.split_with_sizes(state_->in_sizes, -1);
  std::vector<at::Tensor> outputs;
  for (std::int64_t o = 0; o < options.out_tiles; ++o) {
    at::Tensor sum = state_->RunTile(o, 0, slices[0]);
    for (std::int64_t i = 1; i < options.in_tiles; ++i) sum = sum + state_->RunTile(o, i, slices[i]);
    outputs.push_back(sum);
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
}

void TiledLinear::set_tile_runner(TileRunner runner) { state_->runner = std::move(runner); }

const std::vector<models::ParameterUnit>& TiledLinear::units() const { return state_->units; }

void TiledLinear::ResetParameters(std::size_t unit) const {
  const at::NoGradGuard no_grad;
  const double bound = 1 / std::sqrt(static_cast<double>(state_->options.in));
  for (models::ParameterSpec& p : state_->units[unit].parameters) p.tensor.uniform_(-bound, bound);
}

void TiledLinear::Load(const at::Tensor& weight, const at::Tensor& bias) const {
  const at::NoGradGuard no_grad;
  const TiledLinearOptions& options = state_->options;
  PLAIT_CHECK(weight.dim() == 2 && weight.size(0) == options.out && weight.size(1) == options.in)
      << "weight of shape " << weight.sizes();
  PLAIT_CHECK(options.bias || !bias.defined()) << "bias of shape " << bias.sizes() << "; expected none";
  PLAIT_CHECK(!options.bias || bias.defined()) << "no bias; expected [" << options.out << "]";
  PLAIT_CHECK(!options.bias || bias.sizes() == at::IntArrayRef{options.out})
      << "bias of shape " << bias.sizes() << "; expected [" << options.out << "]";
  std::int64_t row = 0;
  for (std::int64_t o = 0; o < options.out_tiles; row += state_->out_sizes[o++]) {
    std::int64_t column = 0;
    for (std::int64_t i = 0; i < options.in_tiles; column += state_->in_sizes[i++]) {
      const at::Tensor rows = weight.narrow(0, row, state_->out_sizes[o]);
      state_->Weight(o, i).copy_(rows.narrow(1, column, state_->in_sizes[i]));
    }
    if (options.bias) state_->Bias(o).copy_(bias.narrow(0, row, state_->out_sizes[o]));
  }
}

at::Tensor TiledLinear::Weight() const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> rows;
  for (std::int64_t o = 0; o < state_->options.out_tiles; ++o) {
    std::vector<at::Tensor> row;
    for (std::int64_t i = 0; i < state_->options.in_tiles; ++i) row.push_back(state_->Weight(o, i));
    rows.push_back(at::cat(row, 1));
  }
  return at::cat(rows, 0);
}

at::Tensor TiledLinear::Bias() const {
  const at::NoGradGuard no_grad;
  if (!state_->options.bias) return {};
  std::vector<at::Tensor> parts;
  for (std::int64_t o = 0; o < state_->options.out_tiles; ++o) parts.push_back(state_->Bias(o));
  return at::cat(parts, 0);
}

const std::shared_ptr<torch::nn::Module>& TiledLinear::module() const { return state_->module; }

}  // namespace plait::parallel
