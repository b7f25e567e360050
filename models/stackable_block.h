// Blocks whose calls can be computed together: what a layer-parallel network offers its solver where many small products
// cost more than one large one, on a GPU.
//
//   class MyBlock final : public models::Block, public models::StackableBlock {
//     std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
//       ... weights of all calls' blocks, stacked: models/stacked/layers.h
//     }
//   };
//
// Part of the contract of block_model.h. A block that does not offer it is called one step after another.
#ifndef PLAIT_MODELS_STACKABLE_BLOCK_H_
#define PLAIT_MODELS_STACKABLE_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "models/block_model.h"

namespace plait::models {

// What block->Forward({hidden}, context) would be called with.
struct BlockCall {
  Block* block = nullptr;
  at::Tensor hidden;
  BlockContext context = {};  // final is false
};

// To be inherited beside Block; found by dynamic_cast.
class StackableBlock {
 public:
  virtual ~StackableBlock() = default;

  // Whether calls together are quicker on `device` than one after another. On processors they are for a few samples
  // alone, and slower for more (tests/benchmarks/batched_relaxation.cc).
  virtual bool PrefersMany(at::Device device) const { return !device.is_cpu(); }

  // Called on the block of calls[0], two calls or more, whose blocks are steps of one network. Hidden states as Forward
  // gives them, in the order of `calls`; empty where these cannot be computed together (blocks or states of several
  // shapes, a context that is not understood), and nothing has happened. Not recorded by autograd; side effects of
  // Forward are left out, as no call is final.
  //
  // A number may differ from Forward's by the rounding of its sums, made in another order: |difference| <= 2 k u
  // sum |a b| for a product of inner size k and unit roundoff u, passed on by what follows. The solver uses these
  // results where it relaxes, never for the states that gradients are recorded at: converged solutions are as near to
  // the serial one as they are one call at a time.
  virtual std::vector<at::Tensor> ForwardMany(absl::Span<const BlockCall> calls) = 0;
};

// What calls together are made of, one entry for each call.
template <typename BlockType>
struct GatheredCalls {
  std::vector<const BlockType*> blocks;
  std::vector<at::Tensor> hidden;
  std::vector<double> steps;  // BlockContext::dt
};

// Null where calls cannot be computed together: for a block of another type, one for which fits(block, context) is false, or
// hidden states of several shapes.
template <typename BlockType, typename Fits>
std::optional<GatheredCalls<BlockType>> GatherCalls(absl::Span<const BlockCall> calls, const Fits& fits) {
  GatheredCalls<BlockType> gathered;
  for (const BlockCall& call : calls) {
    const auto* const block = dynamic_cast<const BlockType*>(call.block);
    if (block == nullptr || !fits(*block, call.context) || call.hidden.sizes() != calls[0].hidden.sizes()) {
      return std::nullopt;
    }
    gathered.blocks.push_back(block);
    gathered.hidden.push_back(call.hidden);
    gathered.steps.push_back(call.context.dt);
  }
  return gathered;
}

}  // namespace plait::models

#endif  // PLAIT_MODELS_STACKABLE_BLOCK_H_
