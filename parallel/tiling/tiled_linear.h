// A linear layer too large for its unit, as tiles that are units of their own: memory-centric tiling.
//
//   TiledLinear linear({.in = 8192, .out = 32768, .in_tiles = 2, .out_tiles = 8}, at::kFloat);
//   auto engine = DataParallel::Create(mesh, linear.units(), {.strategy = Strategy::kFsdp});
//   linear.set_tile_runner([&](std::size_t block, const models::BlockForward& tile, const auto& x) {
//     return (*engine)->Run(block, tile, x);
//   });
//   at::Tensor y = linear.Forward(x);        // (..., in) -> (..., out), as torch::nn::Linear
//
// Tile (o, i) has the rows of output slice o and the columns of input slice i of the weight; slices differ by
// at most one in size. Tiles run one after the other, so that a rank which shards them holds the parameters
// and gradients of a tile or two instead of the layer's: Rajbhandari et al., "ZeRO-Infinity",
// arXiv:2104.07857, section 5.1.3. The sum over input slices is rounded once more per slice; else it is the
// layer without tiles.
//
// In a larger model tiles are numbered from `first_block` on. State dict: tile.O.I.weight (out slice, in
// slice), tile.O.bias (out slice), which belongs to the unit of tile (O, 0). A handle: copies share
// parameters. Local, but for what the runner does.
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

  // Initial values are those of torch::nn::Linear's distribution for the whole layer, tile by tile, from
  // LibTorch's generator; none on the meta device. Options outside their bounds are a programming error.
  TiledLinear(const TiledLinearOptions& options, const at::TensorOptions& tensor_options);

  // (..., in) -> (..., out). Recorded by autograd.
  at::Tensor Forward(const at::Tensor& x) const;

  // Every tile runs through it. Empty: directly.
  void set_tile_runner(TileRunner runner);

  // By block: tile (0, 0), (0, 1), ..., (1, 0), ...
  const std::vector<models::ParameterUnit>& units() const;
  // Draws the values of one unit anew.
  void ResetParameters(std::size_t unit) const;

  // From and to the layer without tiles: weight (out, in), bias (out). Parameters must have memory: not while
  // an engine shards them.
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
