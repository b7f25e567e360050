// Blocks of which several can be evaluated in one batched call. The layer-parallel solver uses this where many small
// matrix products cost more than one batched product, as on a GPU.
//
//   class MyBlock final : public models::Block, public models::StackableBlock {
//     std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
//       ... stack the weights of all blocks: models/stacked/layers.h
//     }
//   };
//
// Part of the interface of block_model.h. Blocks without it are called one step at a time.
#ifndef PLAIT_MODELS_STACKABLE_BLOCK_H_
#define PLAIT_MODELS_STACKABLE_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "models/block_model.h"

namespace plait::models {

// The arguments of block->Forward({hidden}, context).
struct BlockCall {
  Block* block = nullptr;
  at::Tensor hidden;
  BlockContext context = {};  // final is false
};

// To be inherited beside Block; found by dynamic_cast.
class StackableBlock {
 public:
  virtual ~StackableBlock() = default;

  // Whether one batched call is faster than several single ones on `device`. On CPUs it is only for batches of a few
  // samples (tests/benchmarks/batched_relaxation.cc).
  virtual bool PrefersMany(at::Device device) const { return !device.is_cpu(); }

  // Called on the block of calls[0], with two or more calls, whose blocks are steps of one network. Returns the hidden
  // states that Forward would return, in the order of `calls`; empty, without side effects, if the calls cannot be
  // batched (blocks or states of different shapes, an unsupported context). Not recorded by autograd; without the side
  // effects of Forward, as no call is final.
  //
  // Results may differ from Forward's by rounding, as sums are formed in another order: |difference| <= 2 k u sum |a b|
  // for a product of inner size k and unit roundoff u, propagated through later layers. The solver uses these results
  // in relaxation only, never for the states at which gradients are recorded, so converged solutions are as close to
  // the serial one as with single calls.
  virtual std::vector<at::Tensor> ForwardMany(absl::Span<const BlockCall> calls) = 0;
};

// The parts of a batch of calls, one entry per call.
template <typename BlockType>
struct GatheredCalls {
  std::vector<const BlockType*> blocks;
  std::vector<at::Tensor> hidden;
  std::vector<double> steps;  // BlockContext::dt
};

// Returns nullopt if the calls cannot be batched: a block of another type, fits(block, context) false for one of them,
// or hidden states of different shapes.
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
