// A model in the sharding engine with its optimizer: the one place where training programs call the engine.
//
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<ShardedModel> sharded,
//                          ShardedModel::Create(settings, mesh, device, trained));
//
//   const parallel::PipelineStep done = sharded->RunMicroBatches(next);   // forward and backward
//   sharded->Step({.clip_norm = 1});
//   models::LossSum loss = sharded->Loss(batch);                          // evaluation
//
// The model begins on the meta device, so that no rank ever has more than its shards and one unit. Initial
// values are those of the seed for any mesh: each unit is drawn from a seed of its own, and a stage of a pipeline
// draws a root unit whole and keeps its part. Ranks along lp hold the same root parameters, and those of their own
// blocks where blocks are the solver's steps, else all; they compute the same gradients, bitwise. Collective unless said otherwise.
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

// A recurrent network's coarse steps hold their gates over some steps: what --lp-auto may change beside the solver.
struct CoarseHold {
  std::vector<int> choices = {};
  // -1: what the flags say. From the next pass on.
  std::function<void(int hold)> set = {};
  // TensorStep::Evaluations with that hold; empty: 1.
  std::function<std::int64_t(const mgrit::StepInterval& interval, int hold)> evaluations = {};
};

// What a program trains.
struct TrainedModel {
  models::BlockModel* model = nullptr;  // outlives the training
  parallel::ShardedOptimizerOptions optimizer = {};
  double clip_norm = 0;     // 0: no clipping
  bool decays_all = false;  // weight decay acts on every parameter
  // Of parallel::AddTimeTikhonov, over the model's blocks, which are equal; 0: none.
  double time_tikhonov = 0;
  // Sets the values of units()[unit], which have memory then. Empty: the model's ResetParameters.
  std::function<absl::Status(std::size_t unit)> initialize = {};
  // Runs a block with its parameters unsharded. Empty: Block::Forward.
  models::BlockRunner run_block = {};
  // That run_block solves with. Empty: none.
  std::function<mgrit::LayerParallel*()> solver = {};
  CoarseHold coarse_hold = {};
  // For the memory plan where no dry run makes it (dry_run.h); no plan is made where the first is negative.
  std::int64_t activation_bytes_per_sample = -1;
  std::int64_t fixed_activation_bytes = 0;  // for any micro-batch
  std::int64_t evaluation_bytes = 0;
  std::int64_t attention_heads = 0;   // 0: sequences may not be split (cp)
  std::int64_t tokens_of_sample = 0;  // that the model makes of an image; 0: inputs are tokens
};

// Collective. Splits the layers of a model on the meta device over tp, if the mesh has it, and spreads its experts over ep:
// before anything else is done with the model. Errors of tensor_parallel::Parallelize and moe::DistributeExperts;
// InvalidArgument for heads that cp cannot split, and for --reproducible with experts.
absl::Status SplitLayers(const Settings& settings, const comm::DeviceMesh& mesh, const TrainedModel& trained);

// Local. What the memory plan of this rank follows from; of checked settings. Errors of PlanPipeline.
absl::StatusOr<parallel::MemoryPlanRequest> MemoryRequest(const Settings& settings,
                                                          const comm::DeviceMesh& mesh, at::Device device,
                                                          const TrainedModel& trained);

class ShardedModel {
 public:
  // Errors of the engine, of --activation-checkpointing and of `initialize`, the same on all ranks.
  static absl::StatusOr<std::unique_ptr<ShardedModel>> Create(const Settings& settings,
                                                              const comm::DeviceMesh& mesh, at::Device device,
                                                              const TrainedModel& trained);
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  // The batch on the model's device, its targets counted: without waiting for the device, through pinned
  // memory. On CPU, and where it is there already, the batch itself. With cp this rank's part of it. Local.
  models::Batch OnDevice(const models::Batch& whole) const;
  // Forward and backward passes of a step's micro-batches (Settings::MicroBatches), which are on the model's device.
  // Not `final`: they will be run once more, and running statistics wait for that.
  parallel::PipelineStep RunMicroBatches(const parallel::NextMicroBatch& next, bool final = true) {
    return pipeline_->Run(next, final);
  }

  // Forward alone, without autograd; the batch may be on the host. With stages the last one has the loss, the
  // others a zero sum and count.
  models::LossSum Loss(const models::Batch& batch) { return pipeline_->Loss(OnDevice(batch)); }
  // The same for the output; with stages the last one has it, elsewhere it is undefined. With cp every rank computes
  // whole sequences.
  at::Tensor Output(const models::Batch& batch) { return pipeline_->Output(CopyToDevice(batch)); }
  // Calls `forward` with root units unsharded and a runner for blocks: for passes of another kind. On one stage only;
  // with cp every rank passes whole sequences.
  void Forward(const std::function<void(const models::BlockRunner& run)>& forward);
  int stages() const { return static_cast<int>(pipeline_->stages().size()); }
  // Neither pipeline stages nor a layer-parallel solver have spread them over ranks.
  bool has_all_blocks() const { return stages() == 1 && layer_parallel_ == nullptr; }
  // Of the model's blocks, or within them (TrainedModel::solver); null where there is none.
  mgrit::LayerParallel* solver();
  parallel::DataParallel& engine() { return *engine_; }
  const TrainedModel& trained() const { return trained_; }
  const comm::DeviceMesh& mesh() const { return mesh_; }
  at::Device device() const { return device_; }

  // By the tag of the engine's collectives: "transformer.h.3", or the parameter that is a buffer of its own. Local.
  std::vector<std::string> UnitNames() const;

  parallel::StepResult Step(const parallel::StepOptions& options);
  // Before the program ends, also after an error.
  void WaitForParameters() { engine_->WaitForParameters(); }
  parallel::ShardedOptimizer& optimizer() { return *optimizer_; }
  models::BlockModel& model() { return *trained_.model; }

  // Errors of --offload that no step has told, agreed on.
  absl::Status status() const;
  // Every parameter in compute dtype on rank 0, in the host's memory, whatever axes split or stage the model;
  // elsewhere nothing. Each part is broadcast: for saving a model at the end.
  std::map<std::string, at::Tensor> WholeParameters();
  // "parameter NAME" or "gradient of NAME" of the first one of this rank's shards that has a NaN or infinity;
  // empty: none. A router that had such logits is named first. Local.
  std::string FirstNonFinite() const;

  // What this rank adds to a checkpoint; valid until the next step.
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
