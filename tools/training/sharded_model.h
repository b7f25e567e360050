// A model in the sharding engine, with its optimizer and pipeline. Training programs use the engine through this class.
//
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<ShardedModel> sharded,
//                          ShardedModel::Create(settings, mesh, device, trained));
//
//   const parallel::PipelineStep done = sharded->RunMicroBatches(next);   // forward and backward
//   sharded->Step({.clip_norm = 1});
//   models::LossSum loss = sharded->Loss(batch);                          // evaluation
//
// The model starts on the meta device, so that a rank never holds more than its shards and one unsharded unit while it
// is initialized. Initial values depend on the seed alone, not on the mesh: each unit is drawn from its own seed, and
// a pipeline stage draws a whole root unit and keeps its part. Ranks along lp replicate the root parameters; if blocks
// are the solver's steps, each holds its own blocks only, else all blocks. Their gradients of replicated parameters are
// bitwise identical. Members are collective unless marked local; accessors are local.
#ifndef PLAIT_TOOLS_TRAINING_SHARDED_MODEL_H_
#define PLAIT_TOOLS_TRAINING_SHARDED_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/block_model.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/context/context_axis.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/optim/time_tikhonov.h"
#include "parallel/pipeline/executor.h"
#include "parallel/plan/memory_plan.h"
#include "parallel/sharding/data_parallel.h"
#include "tools/training/pipeline_plan.h"
#include "tools/training/settings.h"

namespace plait::training {

// Coarse steps of a recurrent network reuse gates over `hold` steps (gru::GruStepOptions::coarse_hold). --lp-auto tunes
// this together with the solver.
struct CoarseHold {
  std::vector<int> choices = {};  // values to try
  // Sets the hold, from the next pass on; -1: the value of the flags.
  std::function<void(int hold)> set = {};
  // TensorStep::Evaluations for that hold; empty: always 1.
  std::function<std::int64_t(const mgrit::StepInterval& interval, int hold)> evaluations = {};
};

// What a program trains.
struct TrainedModel {
  models::BlockModel* model = nullptr;  // outlives the training
  parallel::ShardedOptimizerOptions optimizer = {};
  double clip_norm = 0;     // 0: no clipping
  bool decays_all = false;  // weight decay acts on every parameter, biases and norms included
  // Factor of parallel::AddTimeTikhonov over the model's blocks, which must have equal shapes; 0: off.
  double time_tikhonov = 0;
  // Sets the initial values of units()[unit], whose parameters are materialized. Empty: the model's ResetParameters.
  std::function<absl::Status(std::size_t unit)> initialize = {};
  // Runs a block, whose parameters are unsharded during the call. Empty: Block::Forward.
  models::BlockRunner run_block = {};
  // The solver that run_block uses. Empty: none.
  std::function<mgrit::LayerParallel*()> solver = {};
  CoarseHold coarse_hold = {};
  // Activation memory for the memory plan of programs without a dry run (dry_run.h). Negative: no memory plan.
  std::int64_t activation_bytes_per_sample = -1;
  std::int64_t fixed_activation_bytes = 0;  // for any micro-batch
  std::int64_t evaluation_bytes = 0;
  // For the memory plan of programs with a dry run: samples of a test's largest batch on a rank; 0: no tests.
  std::int64_t evaluation_samples = 0;
  std::int64_t attention_heads = 0;   // 0: sequences may not be split (cp)
  std::int64_t tokens_of_sample = 0;  // tokens that the model makes of an image; 0: inputs are tokens
};

// Collective. Splits the layers of a model on the meta device over tp and distributes its experts over ep, as far as
// the mesh has these axes. Must precede any other use of the model. Errors of tensor_parallel::Parallelize and
// moe::DistributeExperts. UNIMPLEMENTED if the mesh has cp and the model no sequences, or tp and layers that cannot be
// split. INVALID_ARGUMENT if Ulysses cannot divide the heads, if ep > 1 and the model has no experts, or for experts
// together with --reproducible or a layer-parallel solver.
absl::Status SplitLayers(const Settings& settings, const comm::DeviceMesh& mesh, const TrainedModel& trained);

// Local. The input of parallel::PlanMemory for this rank. Requires checked settings. Errors of PlanPipeline and
// moe::ExpertAxesOf.
absl::StatusOr<parallel::MemoryPlanRequest> MemoryRequest(const Settings& settings,
                                                          const comm::DeviceMesh& mesh, at::Device device,
                                                          const TrainedModel& trained);

class ShardedModel {
 public:
  // Errors, the same on all ranks, of the engine, the optimizer, --activation-checkpointing and `initialize`;
  // INVALID_ARGUMENT for --reproducible on a device other than CPU.
  static absl::StatusOr<std::unique_ptr<ShardedModel>> Create(const Settings& settings,
                                                              const comm::DeviceMesh& mesh, at::Device device,
                                                              const TrainedModel& trained);
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  // Local. Copies the batch to the model's device through pinned memory, without synchronizing with the device; valid
  // targets are counted on the host first. Returns the batch itself if it is on the device already. With cp, this
  // rank's part of the sequences.
  models::Batch OnDevice(const models::Batch& whole) const;
  // Runs forward and backward passes of a step's micro-batches (Settings::MicroBatches), which must be on the model's
  // device. `final` is false if the same micro-batches will be run again: running statistics are not updated then.
  parallel::PipelineStep RunMicroBatches(const parallel::NextMicroBatch& next, bool final = true) {
    return pipeline_->Run(next, final);
  }

  // Forward pass without autograd; the batch may be on the host. In a pipeline the last stage returns the loss, the
  // others a zero sum and count.
  models::LossSum Loss(const models::Batch& batch) { return pipeline_->Loss(OnDevice(batch)); }
  // Returns the model's output; an undefined tensor on all pipeline stages but the last. With cp every rank computes
  // whole sequences.
  at::Tensor Output(const models::Batch& batch) { return pipeline_->Output(CopyToDevice(batch)); }
  // Calls `forward` with root units unsharded and a runner for blocks, for other forward passes such as generation.
  // Requires has_all_blocks(). With cp every rank passes whole sequences.
  void Forward(const std::function<void(const models::BlockRunner& run)>& forward);
  int stages() const { return static_cast<int>(pipeline_->stages().size()); }
  // Whether this rank can run every block: neither pipeline stages nor a layer-parallel solver distribute them.
  bool has_all_blocks() const { return stages() == 1 && layer_parallel_ == nullptr; }
  // The layer-parallel solver over the model's blocks, or within a block (TrainedModel::solver); null if none.
  mgrit::LayerParallel* solver();
  parallel::DataParallel& engine() { return *engine_; }
  const TrainedModel& trained() const { return trained_; }
  const comm::DeviceMesh& mesh() const { return mesh_; }
  at::Device device() const { return device_; }

  // Local. Names of the units, indexed by the tag of the engine's collectives: "transformer.h.3", or the name of a
  // parameter that has a buffer of its own.
  std::vector<std::string> UnitNames() const;

  // Adds the time regularisation, if any, and takes the optimizer's step.
  parallel::StepResult Step(const parallel::StepOptions& options);
  // Must be called before the program ends, also after an error.
  void WaitForParameters() { engine_->WaitForParameters(); }
  parallel::ShardedOptimizer& optimizer() { return *optimizer_; }
  models::BlockModel& model() { return *trained_.model; }

  // The first error of --offload not yet reported by a step, the same on all ranks.
  absl::Status status() const;
  // On rank 0 all parameters, unsharded, in compute dtype and in host memory, by name; empty on other ranks. Parts held
  // along pp, lp and tp are broadcast one by one: meant for saving the model once. Experts distributed over ep are not
  // collected.
  std::map<std::string, at::Tensor> WholeParameters();
  // Local. "parameter NAME" or "gradient of NAME" of the first tensor in this rank's shards with a NaN or an infinity;
  // empty if there is none. A router with non-finite logits is reported first.
  std::string FirstNonFinite() const;

  // This rank's parts of parameters and optimizer state for a checkpoint; valid until the next step.
  absl::StatusOr<std::vector<parallel::TensorPiece>> Pieces() const;
  absl::Status Restore(parallel::Checkpoint& checkpoint);

 private:
  ShardedModel(const comm::DeviceMesh& mesh, at::Device device, const TrainedModel& trained)
      : mesh_(mesh), device_(device), trained_(trained) {}
  absl::Status Assemble(const Settings& settings);
  absl::Status CreateEngine(const Settings& settings, const PipelinePlan& plan);
  void MakeLayerParallel(const Settings& settings, const PipelinePlan& plan,
                         const parallel::CheckpointPolicy& policy);
  parallel::BlockSolve SolveOf(const PipelinePlan& plan);
  absl::Status AddPenalty(double loss_scale);
  models::BlockRunner ThroughEngine();
  models::Batch CopyToDevice(const models::Batch& batch) const;

  comm::DeviceMesh mesh_;
  at::Device device_;
  TrainedModel trained_;
  context_parallel::ContextAxis context_;
  models::BlockRunner forward_;  // a block whose parameters are unsharded
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<mgrit::LayerParallel> layer_parallel_;
  parallel::RowNeighbours neighbours_;
  std::unique_ptr<parallel::PipelineExecutor> pipeline_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SHARDED_MODEL_H_
