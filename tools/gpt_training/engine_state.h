// What an engine and its optimizer hold, as tensors of a checkpoint: "model/NAME" and, for each moment,
// "optimizer/exp_avg/NAME", whole in the checkpoint, whatever strategy and mesh wrote it.
//
//   PLAIT_ASSIGN_OR_RETURN(const auto pieces, PiecesOf(engine, optimizer, /*copies_moments=*/false));
//   saver.Start(step, pieces, state);
//   PLAIT_RETURN_IF_ERROR(ReadState(checkpoint, engine, optimizer));       // of any strategy and mesh
#ifndef PLAIT_TOOLS_GPT_TRAINING_ENGINE_STATE_H_
#define PLAIT_TOOLS_GPT_TRAINING_ENGINE_STATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::gpt_training {

// Local. This rank's pieces of masters and moments; of replicas the first alone has any. Memory is that of
// the engine and the optimizer; `copies_moments`: of their own, for moments that live in a file. Errors as
// those of that file.
absl::StatusOr<std::vector<parallel::TensorPiece>> PiecesOf(const parallel::DataParallel& engine,
                                                            const parallel::ShardedOptimizer& optimizer,
                                                            bool copies_moments);

// Local. Fills masters and moments; the engine's Publish must follow, when all ranks agree that it went well.
// Errors as those of Checkpoint: another architecture, a damaged file.
absl::Status ReadState(parallel::Checkpoint& checkpoint, const parallel::DataParallel& engine,
                       const parallel::ShardedOptimizer& optimizer);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_ENGINE_STATE_H_
