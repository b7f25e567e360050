// Blocks that read further tensors of the batch besides their state, and are differentiated with respect to them: a
// conditioning signal, the output of an encoder, a forcing term.
//
//   class MyBlock final : public models::Block, public models::ConditionedBlock { ... };
//   at::Tensor u_end = net.Forward(u_0, context, {encoded, mask});   // mgrit::LayerParallel
//
// Part of the interface of block_model.h. Other blocks of the same network are called without the tensors.
#ifndef PLAIT_MODELS_CONDITIONED_BLOCK_H_
#define PLAIT_MODELS_CONDITIONED_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/block_model.h"

namespace plait::models {

// To be inherited beside Block; found by dynamic_cast.
class ConditionedBlock {
 public:
  virtual ~ConditionedBlock() = default;
  // Called instead of Block::Forward, under the same rules, if conditioning tensors are given. Recorded by autograd.
  virtual BlockState ForwardConditioned(const BlockState& input, const std::vector<at::Tensor>& conditioning,
                                        const BlockContext& context) = 0;
};

}  // namespace plait::models

#endif  // PLAIT_MODELS_CONDITIONED_BLOCK_H_
