// The checkpointed state of a DataParallel and its optimizer: masters and moments of this rank's shards, as pieces of
// whole tensors that can be loaded with any mesh and strategy.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<TensorPiece> pieces, PiecesOf(dp, &optimizer));
//   state.integers["optimizer.step"] = optimizer.steps();
//   PLAIT_RETURN_IF_ERROR(saver.Start(step, pieces, state));
//   ...
//   PLAIT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
//   PLAIT_RETURN_IF_ERROR(Restore(checkpoint, dp, &optimizer));
//
// Groups: "model" (masters in their own type, frozen parameters and buffers), "optimizer/exp_avg" and
// "optimizer/exp_avg_sq", or "optimizer/momentum"; tensors have their names in the state dict. Only the first replica
// returns pieces of a tensor.
#ifndef PLAIT_PARALLEL_TRAINING_STATE_TRAINING_STATE_H_
#define PLAIT_PARALLEL_TRAINING_STATE_TRAINING_STATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

// Local. Pieces point into the shards and are valid until the next step. Offloaded masters and moments are copied into
// memory; returns the error if reading them fails. If `optimizer` is null: the model only.
absl::StatusOr<std::vector<TensorPiece>> PiecesOf(const DataParallel& dp, const ShardedOptimizer* optimizer);

// Collective. Reads this rank's shards and all-gathers the parameters. `optimizer` gets its moments and number of steps
// ("optimizer.step"); null: the model only. Errors as Checkpoint's, or of offloaded state, the same on all ranks; after
// an error the state is undefined.
absl::Status Restore(Checkpoint& checkpoint, DataParallel& dp, ShardedOptimizer* optimizer);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_TRAINING_STATE_TRAINING_STATE_H_
