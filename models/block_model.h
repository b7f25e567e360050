// A model as a row of blocks between a prologue and an epilogue. Models own their modules and parameters;
// who runs the blocks, in which order and on which rank, is the caller's choice:
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
// This header and placement.h are the one contract that `mgrit` and `parallel` share with `models`; it
// depends on nothing but at::Tensor. Everything here is local.
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

// What travels from block to block.
struct BlockState {
  at::Tensor hidden;               // (batch, ...)
  at::Tensor auxiliary_loss = {};  // scalar, a sum over the blocks so far; undefined where there is none
};

// What dropout masks are functions of, besides the layer and the element's index in the tensor of the whole
// batch: they are the same for any number of ranks.
struct RandomContext {
  std::uint64_t seed = 0;         // of this step and micro-batch
  std::int64_t first_sample = 0;  // number of the batch's first sample among those of all ranks
};

// Which tokens of each sequence are in a batch, where ranks have parts of sequences
// (parallel/context/local_batch.h).
struct SequencePart {
  at::Tensor positions = {};  // (seq of the batch) of int64; undefined: 0 to seq - 1
  std::int64_t length = 0;    // of the whole sequence, without padding
  // The ranks that have the others; not owned. Null where the batch has all.
  const context_parallel::ContextAxis* axis = nullptr;
};

// How a block is called.
struct BlockContext {
  // Step size of a residual block, x + dt F(x); coarse levels of the layer-parallel solver pass larger ones.
  double dt = 1;
  int level = 0;          // of the solver's hierarchy; 0 elsewhere
  std::int64_t step = 0;  // index of the block, or of the fine step at which a coarse one begins
  // The call whose side effects count: running statistics move and counters advance in final calls only. The
  // solver's iterations, and forward passes repeated by activation checkpointing, are not final.
  bool final = true;
  RandomContext random = {};
  SequencePart sequence = {};
  KeyValueCache* cache = nullptr;  // generation: keys and values of earlier positions; not owned
};

class Block {
 public:
  virtual ~Block() = default;
  // Recorded by autograd. The same arguments give the same result within one training step.
  virtual BlockState Forward(const BlockState& input, const BlockContext& context) = 0;
  // Leaves, in the order of the state dict.
  virtual std::vector<at::Tensor> Parameters() const = 0;
};

// Trained parameters have gradients and optimizer state; frozen ones and buffers (running statistics) are
// broadcast from the first rank and saved, but not stepped.
enum class ParameterRole { kTrained, kFrozen, kBuffer };

// Which end of the model reads a parameter of a root unit. One that both read is tied: where they are on
// different ranks, each has it, and its gradient is the sum of theirs.
enum class UsedBy { kPrologue, kEpilogue, kBoth };

struct ParameterSpec {
  std::string name;    // of the state dict
  at::Tensor tensor;   // the model's own handle: who replaces its data (set_data) replaces the model's
  bool decays = true;  // weight decay acts on it: matrices and embeddings, neither biases nor norms
  ParameterRole role = ParameterRole::kTrained;
  Placement placement = {};
  UsedBy used_by =
      UsedBy::kBoth;  // of root units; kBoth is right for every parameter, if not the least memory
};

// Parameters that are used together and travel as one flat buffer.
struct ParameterUnit {
  std::string name;  // "root", or the block's prefix in the state dict: "transformer.h.0"
  std::vector<ParameterSpec> parameters;
  // Index into BlockModel::blocks(); kRoot: prologue and epilogue, unsharded for the whole pass.
  static constexpr int kRoot = -1;
  int block = kRoot;
  // Axes of the mesh that replicate the unit's parameters and shard its states. Axes that the mesh lacks
  // have one rank.
  std::string replicate_axis = "dp_replicate";
  std::string shard_axis = "dp_shard";
};

struct Batch {
  at::Tensor inputs;   // (batch, ...): tokens, images, sequences
  at::Tensor targets;  // (batch, ...): next tokens, class labels; negative ones are ignored
  // Targets that are not ignored, counted before the batch went to a device; -1: the model counts them, and
  // waits for the device.
  std::int64_t valid_targets = -1;
  RandomContext random = {};
  SequencePart sequence = {};
};

// A loss as a sum with its count, so that unequal parts of a batch, ignored targets and any split over ranks
// are normalised once, by the count of the whole batch.
struct LossSum {
  at::Tensor sum;          // scalar, recorded by autograd; float32 or float64
  std::int64_t count = 0;  // valid targets
};

class BlockModel {
 public:
  virtual ~BlockModel() = default;

  // Embeddings, opening layer. With a cache in `context`, inputs are the positions behind those it holds.
  virtual BlockState Prologue(const Batch& batch, const BlockContext& context) = 0;
  virtual const std::vector<std::shared_ptr<Block>>& blocks() const = 0;
  // Final norm and head: (batch, ..., classes). `state` is that of the last block.
  virtual at::Tensor Output(const BlockState& state) = 0;
  // Loss of Output() against batch.targets, summed over the valid ones.
  virtual LossSum Epilogue(const BlockState& state, const Batch& batch) = 0;

  // Every parameter and buffer once: root units and a unit per block, in the order of initialization (a root
  // unit may come last).
  virtual std::vector<ParameterUnit> units() const = 0;
  // Draws the initial values of one unit from LibTorch's CPU generator; all units in their order: what the
  // constructor draws. Parameters on the meta device are left alone.
  virtual void ResetParameters(std::size_t unit) = 0;
  // Whether dropout acts and running statistics move.
  virtual void SetTraining(bool training) = 0;
  // After each optimizer step: what follows from all batches of the step (biases of routers, counts). Local.
  virtual void EndStep() {}
  // Layer by layer, as PyTorch prints modules.
  virtual std::string Description() const = 0;
};

// The forward pass of one block, or of several, with everything else bound.
using BlockForward = std::function<BlockState(const BlockState& input)>;

// Runs block `block` of a model: directly, or through an engine.
using BlockRunner =
    std::function<BlockState(std::size_t block, const BlockState& input, const BlockContext& context)>;

// Prologue and blocks; blocks run through `run`, directly where it is empty.
BlockState RunBlocks(BlockModel& model, const Batch& batch, const BlockRunner& run = {},
                     const BlockContext& context = {});
// And the epilogue, or the output.
LossSum RunModel(BlockModel& model, const Batch& batch, const BlockRunner& run = {});
at::Tensor RunOutput(BlockModel& model, const Batch& batch, const BlockRunner& run = {},
                     const BlockContext& context = {});

// Whether weight decay acts on a parameter unless a model says otherwise: those of two dimensions or more.
inline bool DecaysByDefault(const at::Tensor& parameter) { return parameter.dim() >= 2; }

// A unit of trained parameters that are whole on every rank; decays by DecaysByDefault.
inline ParameterUnit MakeUnit(const std::string& name,
                              const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                              int block = ParameterUnit::kRoot) {
  ParameterUnit unit = {.name = name, .parameters = {}, .block = block};
  for (const auto& [full_name, tensor] : parameters) {
    unit.parameters.push_back({.name = full_name, .tensor = tensor, .decays = DecaysByDefault(tensor)});
  }
  return unit;
}

// A root unit and a unit per prefix, named after it: a parameter whose name begins with PREFIX and "."
// belongs to that block, others to the root. In the order given; decays by DecaysByDefault, frozen where
// requires_grad is off.
std::vector<ParameterUnit> UnitsByPrefix(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                         const std::vector<std::string>& prefixes);

// Elements of all trained and frozen parameters.
std::int64_t CountParameters(const std::vector<ParameterUnit>& units);

// Makes `parameter` look at the memory of `data`, which has the same shape: set_data() that also knows the
// meta device, in both directions. The parameter stays a leaf and keeps requires_grad. Call it outside a
// recorded pass: what autograd has recorded refers to the old data.
void Materialize(const at::Tensor& parameter, const at::Tensor& data);

// What `placement` says is local of `whole`: a copy; without memory on the meta device. Several boxes lie one
// behind the other along dimension 0.
at::Tensor LocalPart(const at::Tensor& whole, const Placement& placement);
// The parameter becomes its local part. Before it has gradients.
void KeepLocalPart(const at::Tensor& parameter, const Placement& placement);

}  // namespace plait::models

#endif  // PLAIT_MODELS_BLOCK_MODEL_H_
