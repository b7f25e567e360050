// A model as a sequence of blocks between a prologue and an epilogue. Models own their modules and parameters;
// the caller decides who runs the blocks, in which order and on which rank:
//
//   BlockState state = model.Prologue(batch, {});
//   for (const auto& block : model.blocks()) state = block->Forward(state, {});
//   LossSum loss = model.Epilogue(state, batch);
//
// is the plain forward pass (RunModel below). A sharding engine holds a block's parameters unsharded around
// its forward and backward, activation checkpointing wraps one block, a pipeline stage is a range of blocks
// with or without prologue and epilogue, the layer-parallel solver takes blocks as its steps, and generation
// passes a cache in the context. Blocks are ordinary torch::nn code underneath.
//
// This header, placement.h, stackable_block.h and conditioned_block.h are the interface between `models` and
// `mgrit` or `parallel`, which use a few kernels of `models` besides (docs/decisions/015). They depend on nothing
// but at::Tensor. Everything here is local.
#ifndef PLAIT_MODELS_BLOCK_MODEL_H_
#define PLAIT_MODELS_BLOCK_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/placement.h"

namespace plait::context_parallel {
class ContextAxis;
}

namespace plait::models {

class KeyValueCache;

// The activations passed from block to block.
struct BlockState {
  at::Tensor hidden;               // (batch, ...)
  at::Tensor auxiliary_loss = {};  // scalar, summed over the blocks so far; undefined if there is none
};

// Dropout masks are a function of this, the layer, and the element's index in the tensor of the global batch, so
// that they are bitwise identical for any number of ranks.
struct RandomContext {
  std::uint64_t seed = 0;         // of this step and micro-batch
  std::int64_t first_sample = 0;  // index of this batch's first sample in the global batch
};

// Which tokens of each sequence are in a batch under context parallelism (parallel/context/local_batch.h).
struct SequencePart {
  at::Tensor positions = {};  // (local seq) int64; undefined: 0 to seq - 1
  std::int64_t length = 0;    // of the whole sequence, without padding
  // The ranks that hold the other tokens; not owned. Null if the batch holds whole sequences.
  const context_parallel::ContextAxis* axis = nullptr;
};

// Arguments of a block's call besides its input.
struct BlockContext {
  // Step size of a residual block, x + dt F(x); coarse levels of the layer-parallel solver pass larger ones.
  double dt = 1;
  int level = 0;          // of the solver's hierarchy; 0 elsewhere
  std::int64_t step = 0;  // index of the block, or of the fine step at which a coarse one begins
  // Running statistics and counters are updated in final calls only. The solver's iterations, and forward
  // passes recomputed by activation checkpointing, are not final.
  bool final = true;
  RandomContext random = {};
  SequencePart sequence = {};
  KeyValueCache* cache = nullptr;  // generation: keys and values of earlier positions; not owned
};

class Block {
 public:
  virtual ~Block() = default;
  // Recorded by autograd. Deterministic within one training step: the same arguments give the same result.
  virtual BlockState Forward(const BlockState& input, const BlockContext& context) = 0;
  // Leaf tensors, in state-dict order.
  virtual std::vector<at::Tensor> Parameters() const = 0;
};

// Trained parameters have gradients and optimizer state. Frozen parameters and buffers (running statistics) are
// broadcast from the first rank and saved in checkpoints, but not updated by the optimizer.
enum class ParameterRole { kTrained, kFrozen, kBuffer };

// Which end of the model reads a parameter of a root unit. A tied parameter is read by both: if prologue and
// epilogue are on different pipeline stages, each has a copy, and the gradient is the sum over the copies.
enum class UsedBy { kPrologue, kEpilogue, kBoth };

struct ParameterSpec {
  std::string name;    // in the state dict
  at::Tensor tensor;   // the model's own handle: replacing its data (set_data) replaces the model's
  bool decays = true;  // subject to weight decay, with or without a gradient; biases and norms are not
  ParameterRole role = ParameterRole::kTrained;
  Placement placement = {};
  // Read in root units only. kBoth is correct for every parameter but may take additional memory; a buffer that both ends
  // would have is refused where they are on different pipeline stages.
  UsedBy used_by = UsedBy::kBoth;
};

// Parameters that are used together and communicated as one flat buffer (the unit of FSDP).
struct ParameterUnit {
  std::string name;  // "root", or the block's prefix in the state dict: "transformer.h.0"
  std::vector<ParameterSpec> parameters;
  // Index into BlockModel::blocks(); kRoot: prologue and epilogue, unsharded for the whole pass.
  static constexpr int kRoot = -1;
  int block = kRoot;
  // Mesh axes over which the unit is replicated and sharded. An axis that the mesh lacks counts as one rank.
  std::string replicate_axis = "dp_replicate";
  std::string shard_axis = "dp_shard";
};

struct Batch {
  at::Tensor inputs;   // (batch, ...): tokens, images, sequences
  at::Tensor targets;  // (batch, ...): next tokens, class labels; negative ones are ignored
  // Number of targets that are not ignored, counted before the batch was copied to a device; -1: the model counts
  // them, which synchronizes with the device.
  std::int64_t valid_targets = -1;
  RandomContext random = {};
  SequencePart sequence = {};
};

// A loss as a sum and a count, so that unequal micro-batches, ignored targets and any split over ranks are
// normalized once, by the count of the global batch.
struct LossSum {
  at::Tensor sum;          // scalar, recorded by autograd; float32 or float64
  std::int64_t count = 0;  // valid targets
};

class BlockModel {
 public:
  virtual ~BlockModel() = default;

  // Embeddings or opening layer. With a cache in `context`, inputs continue the positions that the cache holds.
  virtual BlockState Prologue(const Batch& batch, const BlockContext& context) = 0;
  virtual const std::vector<std::shared_ptr<Block>>& blocks() const = 0;
  // Final norm and head: (batch, ..., classes). `state` is the output of the last block.
  virtual at::Tensor Output(const BlockState& state) = 0;
  // Loss of Output() against batch.targets, summed over the valid ones.
  virtual LossSum Epilogue(const BlockState& state, const Batch& batch) = 0;

  // Every parameter and buffer exactly once: root units, one unit per block, and further units of a block with
  // other mesh axes (experts), in the order of initialization. A root unit may come last.
  virtual std::vector<ParameterUnit> units() const = 0;
  // Draws the initial values of one unit from LibTorch's CPU generator. Called for all units in order, it draws
  // what the constructor draws. Does nothing for parameters on the meta device.
  virtual void ResetParameters(std::size_t unit) = 0;
  // As torch::nn::Module::train(): enables dropout and the update of running statistics.
  virtual void SetTraining(bool training) = 0;
  // Call it after each optimizer step: updates what depends on all micro-batches of the step (router biases,
  // load counters). `updated`: whether the step has changed the parameters; one with gradients that are not finite has
  // not. Local.
  virtual void EndStep(bool updated) { static_cast<void>(updated); }
  // The layers, in the format in which PyTorch prints modules.
  virtual std::string Description() const = 0;
};

// The forward pass of one block, or of several, with all other arguments bound.
using BlockForward = std::function<BlockState(const BlockState& input)>;

// Runs block `block` of a model: directly, or through an engine.
using BlockRunner =
    std::function<BlockState(std::size_t block, const BlockState& input, const BlockContext& context)>;

// Runs the prologue and all blocks, through `run`, or directly if it is empty; sets `step`, `random` and `sequence` of
// the context. Returns the state after the last block.
BlockState RunBlocks(BlockModel& model, const Batch& batch, const BlockRunner& run = {},
                     const BlockContext& context = {});
// RunBlocks, then Epilogue(), or Output().
LossSum RunModel(BlockModel& model, const Batch& batch, const BlockRunner& run = {});
at::Tensor RunOutput(BlockModel& model, const Batch& batch, const BlockRunner& run = {},
                     const BlockContext& context = {});

// The default rule for weight decay: parameters of two or more dimensions.
inline bool DecaysByDefault(const at::Tensor& parameter) { return parameter.dim() >= 2; }

// A unit of trained parameters, none of them split; `decays` by DecaysByDefault.
inline ParameterUnit MakeUnit(const std::string& name,
                              const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                              int block = ParameterUnit::kRoot) {
  ParameterUnit unit = {.name = name, .parameters = {}, .block = block};
  for (const auto& [full_name, tensor] : parameters) {
    unit.parameters.push_back({.name = full_name, .tensor = tensor, .decays = DecaysByDefault(tensor)});
  }
  return unit;
}

// A root unit and one unit per prefix, named after it. A parameter whose name begins with PREFIX and "." belongs
// to that prefix (to the last one, if several match), all others to the root. `decays` by DecaysByDefault; frozen
// if requires_grad is false.
std::vector<ParameterUnit> UnitsByPrefix(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                         const std::vector<std::string>& prefixes);

// Number of elements of all parameters, trained and frozen, without buffers.
std::int64_t CountParameters(const std::vector<ParameterUnit>& units);

// Makes `parameter` share the memory of `data`, which has the same shape: set_data() that also works from and to
// the meta device. The parameter stays a leaf and keeps requires_grad. Do not call it between a forward pass
// and its backward: the autograd graph refers to the old data.
void Materialize(const at::Tensor& parameter, const at::Tensor& data);

// Returns a copy of the part of `whole` that is local according to `placement` (no memory on the meta device).
// Several boxes are concatenated along dimension 0.
at::Tensor LocalPart(const at::Tensor& whole, const Placement& placement);
// Replaces the data of `parameter` by its local part. The parameter must not have a gradient yet.
void KeepLocalPart(const at::Tensor& parameter, const Placement& placement);

}  // namespace plait::models

#endif  // PLAIT_MODELS_BLOCK_MODEL_H_
