// Activation checkpointing: a block keeps only its input and computes its activations again in backward.
//
//   at::Tensor y = CheckpointActivations([&block](const at::Tensor& x) { return block.Forward(x); }, x);
//
// or for the blocks of a model that a policy names:
//
//   PLAIT_ASSIGN_OR_RETURN(const CheckpointPolicy policy, CheckpointPolicy::Parse("every=2", block_names));
//   BlockState y = policy.Forward(index, model.blocks()[index], x, context);
//
// Forward runs without recording; what lives until backward is the input, the states of LibTorch's random
// generators (5 KB on the CPU) and the output, which the next block keeps as its input anyway. For L equal
// blocks the activations of a step are those of one block and L inputs, for one forward more: Chen et al.,
// "Training deep nets with sublinear memory cost", arXiv:1604.06174.
//
// Output and gradients have the bits of the plain pass, also with dropout, as long as a parameter is used in
// one checkpointed block alone (its gradients are summed in another order otherwise). The generators stand
// after backward where they would have stood without.
#ifndef PLAIT_PARALLEL_ACTIVATION_CHECKPOINT_ACTIVATION_CHECKPOINT_H_
#define PLAIT_PARALLEL_ACTIVATION_CHECKPOINT_ACTIVATION_CHECKPOINT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/block_model.h"

namespace plait::parallel {

// `final`: the first call, whose side effects count (models::BlockContext::final).
using RepeatableForward = std::function<models::BlockState(const models::BlockState& input, bool final)>;

// forward(input), recorded as one function. `forward` is copied and called once more in each backward, then
// recorded, where its parameters get their gradients by their own accumulation with its hooks; also where
// `input` requires no gradient. It must do the same each time, and what it refers to must live until then.
// Parameters need their data during both calls alone: memory that comes and goes in between is no matter.
//
// With autograd off it is forward(input). The input must not be changed in place before backward: LibTorch
// then throws. Gradients of gradients and torch::autograd::grad() with respect to parameters are not offered.
// Local.
models::BlockState CheckpointActivations(const RepeatableForward& forward, const models::BlockState& input);
at::Tensor CheckpointActivations(const std::function<at::Tensor(const at::Tensor&)>& forward,
                                 const at::Tensor& input);

// Which blocks are checkpointed.
class CheckpointPolicy {
 public:
  // "none"; "full": all; "every=K": blocks 0, K, 2K, ...; else names of blocks, separated by commas, in which
  // a * stands for any characters: "transformer.h.0,transformer.h.1*". InvalidArgument for a K below 1 and a
  // name that no block has.
  static absl::StatusOr<CheckpointPolicy> Parse(absl::string_view text,
                                                const std::vector<std::string>& block_names);

  bool Picks(std::size_t block) const { return block < picked_.size() && picked_[block]; }
  std::size_t count() const;  // blocks picked

  // The forward pass of `block`, number `index` of its model: a checkpoint if the policy picks it.
  models::BlockState Forward(std::size_t index, const std::shared_ptr<models::Block>& block,
                             const models::BlockState& input, const models::BlockContext& context) const;

 private:
  std::vector<bool> picked_;  // by block
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_ACTIVATION_CHECKPOINT_ACTIVATION_CHECKPOINT_H_
