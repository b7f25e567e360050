// What a checkpoint keeps of a DataParallel and its optimizer: masters and moments of this rank's shards as
// pieces of whole tensors, so that any mesh and strategy loads them.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<TensorPiece> pieces, PiecesOf(dp, &optimizer));
//   state.integers["optimizer.step"] = optimizer.steps();
//   PLAIT_RETURN_IF_ERROR(saver.Start(step, pieces, state));
//   ...
//   PLAIT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
//   PLAIT_RETURN_IF_ERROR(Restore(checkpoint, dp, &optimizer));
//
// Groups: "model" (masters, of their own type), "optimizer/exp_avg", "optimizer/exp_avg_sq" or
// "optimizer/momentum", by the names of the state dict. Of replicas the first alone offers its pieces.
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

// Local. Pieces point into the shards: valid until the next step. Masters and moments that live in a file are
// copied into memory, and errors of reading them come back. Without `optimizer`: the model alone.
absl::StatusOr<std::vector<TensorPiece>> PiecesOf(const DataParallel& dp, const ShardedOptimizer* optimizer);

// Collective. Reads this rank's shards and publishes the parameters; `optimizer` gets its moments and the
// number of its steps ("optimizer.step"). Errors as Checkpoint's, the same on all ranks; after one, the state
// is a mixture.
absl::Status Restore(Checkpoint& checkpoint, DataParallel& dp, ShardedOptimizer* optimizer);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_TRAINING_STATE_TRAINING_STATE_H_
