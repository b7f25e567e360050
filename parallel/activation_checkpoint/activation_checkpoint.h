// Activation checkpointing: a block keeps only its input and recomputes its activations in the backward pass.
//
//   at::Tensor y = CheckpointActivations([&block](const at::Tensor& x) { return block.Forward(x); }, x);
//
// or for the blocks of a model that a policy selects:
//
//   PLAIT_ASSIGN_OR_RETURN(const CheckpointPolicy policy, CheckpointPolicy::Parse("every-2", block_names));
//   BlockState y = policy.Forward(index, model.blocks()[index], x, context);
//
// Forward runs without recording. Until backward, only the input, the states of LibTorch's random generators (5 KB on
// the CPU) and the output, which the next block keeps as its input anyway, stay in memory. L equal blocks need the
// activations of one block and L inputs, for one additional forward: Chen et al., "Training deep nets with sublinear
// memory cost", arXiv:1604.06174.
//
// Output and gradients are bitwise those of the plain pass, also with dropout, if each parameter is used in one
// checkpointed block only (otherwise its gradients are summed in another order). Backward leaves the generators in
// the state that they would have without checkpointing.
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

// `final`: true in the first call, false when repeated in backward (models::BlockContext::final).
using RepeatableForward = std::function<models::BlockState(const models::BlockState& input, bool final)>;

// Returns forward(input), recorded by autograd as one function. `forward` is copied, and called again with recording in
// each backward; its parameters then accumulate their gradients, and their hooks run, even if `input` requires no
// gradient. It must be deterministic, and what it refers to must stay alive until the backward. Parameters need their
// data only during the two calls, so an engine may free it in between.
//
// Without autograd, the same as forward(input). LibTorch throws if the input is modified in place before backward.
// Gradients of gradients, and torch::autograd::grad() with respect to parameters, are not supported. Local.
models::BlockState CheckpointActivations(const RepeatableForward& forward, const models::BlockState& input);
at::Tensor CheckpointActivations(const std::function<at::Tensor(const at::Tensor&)>& forward,
                                 const at::Tensor& input);

// Selects the blocks to checkpoint. By default none.
class CheckpointPolicy {
 public:
  // "none"; "full": all blocks; "every-K": blocks 0, K, 2K, ...; otherwise comma-separated block names, in which *
  // matches any characters: "transformer.h.0,transformer.h.1*". INVALID_ARGUMENT if K is not an integer of at least 1,
  // or a name matches no block.
  static absl::StatusOr<CheckpointPolicy> Parse(absl::string_view text,
                                                const std::vector<std::string>& block_names);

  bool Picks(std::size_t block) const { return block < picked_.size() && picked_[block]; }
  std::size_t count() const;  // blocks picked

  // The forward pass of `block`, the model's block number `index`; checkpointed if the policy selects it.
  models::BlockState Forward(std::size_t index, const std::shared_ptr<models::Block>& block,
                             const models::BlockState& input, const models::BlockContext& context) const;

 private:
  std::vector<bool> picked_;  // by block
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_ACTIVATION_CHECKPOINT_ACTIVATION_CHECKPOINT_H_
