// Memory-centric tiling: a linear layer that is too large for one unit, split into tiles that are units of their own.
//
//   TiledLinear linear({.in = 8192, .out = 32768, .in_tiles = 2, .out_tiles = 8}, at::kFloat);
//   auto engine = DataParallel::Create(mesh, linear.units(), {.strategy = Strategy::kFsdp});
//   linear.set_tile_runner([&](std::size_t block, const models::BlockForward& tile, const auto& x) {
//     return (*engine)->Run(block, tile, x);
//   });
//   at::Tensor y = linear.Forward(x);        // (..., in) -> (..., out), as torch::nn::Linear
//
// Tile (o, i) has the rows of output slice o and the columns of input slice i of the weight; slice sizes differ by at
// most one. Tiles run one after another, so a rank that shards them holds the parameters and gradients of one or two
// tiles at a time: Rajbhandari et al., "ZeRO-Infinity", arXiv:2104.07857, section 5.1.3. Apart from one more rounding
// per input slice, results are those of the unsplit layer.
//
// In a larger model, tiles are the blocks from `first_block` on. State dict: tile.O.I.weight (out slice, in slice) and
// tile.O.bias (out slice), which belongs to the unit of tile (O, 0). TiledLinear is a handle: copies share parameters.
// Local, except for the tile runner.
#ifndef PLAIT_PARALLEL_TILING_TILED_LINEAR_H_
#define PLAIT_PARALLEL_TILING_TILED_LINEAR_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/block_model.h"

namespace torch::nn {
class Module;
}

namespace plait::parallel {

struct TiledLinearOptions {
  std::int64_t in = 0, out = 0;              // positive
  std::int64_t in_tiles = 1, out_tiles = 1;  // 1 to in, 1 to out
  bool bias = true;
  std::size_t first_block = 0;  // index of tile (0, 0) among the blocks of the model
};

class TiledLinear {
 public:
  using TileRunner = std::function<models::BlockState(std::size_t block, const models::BlockForward& tile,
                                                      const models::BlockState& input)>;

  // Draws initial values from torch::nn::Linear's distribution for the whole layer, tile by tile, with LibTorch's
  // default generator; not on the meta device. The program ends if an option is out of bounds.
  TiledLinear(const TiledLinearOptions& options, const at::TensorOptions& tensor_options);

  // (..., in) -> (..., out). Recorded by autograd.
  at::Tensor Forward(const at::Tensor& x) const;

  // Runs every tile, for example through DataParallel::Run. Empty: tiles run directly.
  void set_tile_runner(TileRunner runner);

  // One per tile, in the order (0, 0), (0, 1), ..., (1, 0), ...
  const std::vector<models::ParameterUnit>& units() const;
  // Draws new initial values for one unit.
  void ResetParameters(std::size_t unit) const;

  // Copy from and to the unsplit layer: weight (out, in), bias (out); without bias, Bias() is undefined. Parameters
  // must have memory: not while an engine has them sharded.
  void Load(const at::Tensor& weight, const at::Tensor& bias) const;
  at::Tensor Weight() const;
  at::Tensor Bias() const;

  const std::shared_ptr<torch::nn::Module>& module() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_TILING_TILED_LINEAR_H_
