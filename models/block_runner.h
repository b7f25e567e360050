// How an engine takes part in a model's forward pass and gets at its parameters, block by block: sharding,
// activation checkpoints, pipelines, time per block. Models know nothing of engines.
//
//   model.set_block_runner([&](std::size_t block, const BlockForward& forward, const at::Tensor& input) {
//     engine.Gather(block + 1);              // the parameters of units()[block + 1] have their data now
//     at::Tensor output = forward(input);
//     engine.Release(block + 1);
//     return output;
//   });
//   for (const ParameterUnit& unit : model.units()) ...
//
// A model is a row of blocks; what comes before the first and after the last (embeddings, final norm, head)
// is the root. Unit 0 is the root, unit i + 1 is block i. A model that is only a row of blocks has a root
// without parameters. Initial values can be drawn a unit at a time, in the order of the units:
//
//   plait::gpt::Gpt gpt(options, at::TensorOptions(at::kMeta));   // sizes, no memory
//   const std::vector<ParameterUnit> units = gpt.units();
//   for (std::size_t unit = 0; unit < units.size(); ++unit) {
//     for (const auto& [name, parameter] : units[unit].parameters) {
//       Materialize(parameter, at::empty(parameter.sizes(), at::kFloat));
//     }
//     gpt.ResetParameters(unit);
//   }
//
// gives the values that the constructor gives on a device with memory, from the same state of LibTorch's
// generator. Local.
#ifndef PLAIT_MODELS_BLOCK_RUNNER_H_
#define PLAIT_MODELS_BLOCK_RUNNER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plait::models {

// One block on its input, recorded by autograd. A copy may be called again later, also after the forward pass
// (activation checkpoints), as long as the model lives.
using BlockForward = std::function<at::Tensor(const at::Tensor&)>;

// Called by a model's Forward() for block 0, 1, ...; returns what goes to the next block.
using BlockRunner =
    std::function<at::Tensor(std::size_t block, const BlockForward& forward, const at::Tensor& input)>;

// Parameters that are used together. Tensors are handles: who replaces the data (set_data, Materialize)
// replaces the model's. Names are those of the state dict, in its order.
struct ParameterUnit {
  std::string name;  // "root", or the block's place in the state dict: "transformer.h.0"
  std::vector<std::pair<std::string, at::Tensor>> parameters;
};

// Runs `forward` through `runner`, or directly where there is none.
inline at::Tensor RunBlock(const BlockRunner& runner, std::size_t block, const BlockForward& forward,
                           const at::Tensor& input) {
  return runner ? runner(block, forward, input) : forward(input);
}

// Makes `parameter` look at the memory of `data`, which has the same shape: set_data() that also knows
// kMeta, in both directions. The parameter stays a leaf and keeps requires_grad. To be called outside a
// recorded pass: what autograd has recorded is about the old data.
void Materialize(const at::Tensor& parameter, const at::Tensor& data);

// Whether AdamW decays it: matrices and embeddings, neither biases nor norms' weights.
bool IsDecayed(const at::Tensor& parameter);

// The root and `blocks` units, named PREFIX0, PREFIX1, ...; a parameter whose name begins with "PREFIX3."
// belongs to the fourth of them, others to the root. In the order given.
std::vector<ParameterUnit> UnitsByPrefix(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                         const std::string& prefix, std::int64_t blocks);

// Elements of all units.
std::int64_t CountParameters(const std::vector<ParameterUnit>& units);

}  // namespace plait::models

#endif  // PLAIT_MODELS_BLOCK_RUNNER_H_
