// A model in the sharding engine with its optimizer: the one place where training programs call the engine.
//
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<ShardedModel> sharded,
//                          ShardedModel::Create(settings, mesh, device, trained));
//
//   models::LossSum loss = sharded->Loss(batch);   // of a batch on the host or on the device
//   sharded->Backward(loss.sum / nominal_count, /*micro_batch=*/{});
//   sharded->Step({.clip_norm = 1});
//
// The model begins on the meta device, so that no rank ever has more than its shards and one unit. Initial
// values are those of the seed for any mesh. Ranks along lp hold the same parameters and compute the same
// gradients, bitwise. Collective unless said otherwise.
#ifndef PLAIT_TOOLS_TRAINING_SHARDED_MODEL_H_
#define PLAIT_TOOLS_TRAINING_SHARDED_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "models/block_model.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/plan/memory_plan.h"
#include "parallel/sharding/data_parallel.h"
#include "tools/training/settings.h"

namespace plait::training {

// What a program trains.
struct TrainedModel {
  models::BlockModel* model = nullptr;  // outlives the training
  parallel::ShardedOptimizerOptions optimizer = {};
  double clip_norm = 0;     // 0: no clipping
  bool decays_all = false;  // weight decay acts on every parameter
  // Sets the values of units()[unit], which have memory then. Empty: the model's ResetParameters.
  std::function<absl::Status(std::size_t unit)> initialize = {};
  // Runs a block with its parameters unsharded. Empty: Block::Forward.
  models::BlockRunner run_block = {};
  // For the memory plan; no plan is made where the first is negative.
  std::int64_t activation_bytes_per_sample = -1;
  std::int64_t fixed_activation_bytes = 0;  // for any micro-batch
  std::int64_t evaluation_bytes = 0;
};

// Local. Blocks that --activation-checkpointing picks. InvalidArgument for a block that is not there.
absl::StatusOr<std::int64_t> CheckpointedBlocks(const Settings& settings, const models::BlockModel& model);

// Local. Of checked settings.
parallel::MemoryPlan PlanMemory(const Settings& settings, const comm::DeviceMesh& mesh, at::Device device,
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
  // memory. On CPU, and where it is there already, the batch itself. Local.
  models::Batch OnDevice(const models::Batch& batch) const;
  // Recorded by autograd, unless a NoGradGuard is there. Both take batches on the host, too.
  models::LossSum Loss(const models::Batch& batch);
  at::Tensor Output(const models::Batch& batch);
  // Calls `forward` with root units unsharded and a runner for blocks: for passes of another kind.
  void Forward(const std::function<void(const models::BlockRunner& run)>& forward);

  using MicroBatch = parallel::DataParallel::MicroBatch;
  void Backward(const at::Tensor& loss, const MicroBatch& micro_batch) {
    engine_->Backward(loss, micro_batch);
  }
  parallel::StepResult Step(const parallel::StepOptions& options) { return optimizer_->Step(options); }
  // Before the program ends, also after an error.
  void WaitForParameters() { engine_->WaitForParameters(); }
  parallel::ShardedOptimizer& optimizer() { return *optimizer_; }
  models::BlockModel& model() { return *trained_.model; }

  // Errors of --offload that no step has told, agreed on.
  absl::Status status() const;
  // Calls `visit` for each parameter, unsharded and in compute dtype, on every rank.
  void VisitParameters(const std::function<void(const std::string& name, const at::Tensor& value)>& visit);
  // "parameter NAME" or "gradient of NAME" of the first one of this rank's shards that has a NaN or infinity;
  // empty: none. Local.
  std::string FirstNonFinite() const;

  // What this rank adds to a checkpoint; valid until the next step.
  absl::StatusOr<std::vector<parallel::TensorPiece>> Pieces() const;
  absl::Status Restore(parallel::Checkpoint& checkpoint);

 private:
  ShardedModel(const comm::DeviceMesh& mesh, at::Device device, const TrainedModel& trained)
      : mesh_(mesh), device_(device), trained_(trained) {}
  absl::Status Assemble(const Settings& settings);

  comm::DeviceMesh mesh_;
  at::Device device_;
  TrainedModel trained_;
  models::BlockRunner run_;  // a block, through the engine
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SHARDED_MODEL_H_
