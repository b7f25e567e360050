// Saves what all ranks hold as one checkpoint.
//
//   const std::vector<TensorPiece> mine = ...;            // this rank's shards (tensor_piece.h)
//   const CheckpointState state = {.texts = {{"config", json}}, .rank_state = {{"rng", bytes}}};
//   absl::StatusOr<SaveReport> saved = SaveCheckpoint(world, "run", step, mine, state);
//
// Each rank writes a file of its own into run/step-N.partial, rank 0 also the index; when all are on the disk, rank 0
// renames the folder to run/step-N and points run/latest to it, and the ranks remove checkpoints beyond keep_last.
//
// Collective; every rank gets the same result. Errors are one line: INVALID_ARGUMENT if the pieces of all
// ranks do not hold every element exactly once (layout.h) or a text is not UTF-8, RESOURCE_EXHAUSTED for a
// full disk, PERMISSION_DENIED and others for folders that cannot be written. Whatever goes wrong on any
// rank, and wherever the job is killed, the last good checkpoint is not touched. (If only `latest` cannot be
// written, the new checkpoint is there and complete; the error names that file.)
//
// The folder must be the same for all ranks: on one machine, or on a shared file system.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SAVE_H_
#define PLAIT_PARALLEL_CHECKPOINT_SAVE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

// The state of a run besides its tensors. Usual names: texts "config", "command", "version", "mesh";
// integers "sampler.seed", "sampler.epoch", "sampler.position", "optimizer.step"; rank_state "rng.dp_shard".
struct CheckpointState {
  std::map<std::string, std::string> texts = {};       // UTF-8; rank 0's are saved
  std::map<std::string, std::int64_t> integers = {};   // rank 0's are saved
  std::map<std::string, std::string> rank_state = {};  // bytes, each rank its own; no '/' in names
};

struct SaveOptions {
  int keep_last = 0;  // complete checkpoints up to this step that stay, itself among them; 0: all
};

struct SaveReport {
  std::string folder;      // "run/step-000001000"
  std::int64_t bytes = 0;  // of all ranks' files
};

absl::StatusOr<SaveReport> SaveCheckpoint(const comm::Communicator& comm, const std::string& root,
                                          std::int64_t step, absl::Span<const TensorPiece> pieces,
                                          const CheckpointState& state, const SaveOptions& options = {});

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SAVE_H_
