// Saves the shards of all ranks as one checkpoint.
//
//   const std::vector<TensorPiece> mine = ...;            // this rank's shards (tensor_piece.h)
//   const CheckpointState state = {.texts = {{"config", json}}, .rank_state = {{"rng", bytes}}};
//   absl::StatusOr<SaveReport> saved = SaveCheckpoint(world, "run", step, mine, state);
//
// Each rank writes its own file into run/step-N.partial, rank 0 also the index. When all are fsynced, rank 0 renames
// the folder to run/step-N and writes its name to run/latest, and checkpoints beyond keep_last are removed.
//
// Collective over `comm`; every rank gets the same result. Errors are one line: INVALID_ARGUMENT if the pieces of all
// ranks do not hold every element exactly once (layout.h), ranks save different steps, or a text is not UTF-8;
// RESOURCE_EXHAUSTED if the disk is full; FAILED_PRECONDITION if rank 0 does not see the file of another rank;
// PERMISSION_DENIED and others if the folder is not writable. If a save fails on any rank, or the job is killed at any
// point, the last good checkpoint stays intact. (If only `latest` cannot be written, the new checkpoint is complete;
// the error names that file.)
//
// All ranks must see the same folder: on one node, or on a shared file system.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SAVE_H_
#define PLAIT_PARALLEL_CHECKPOINT_SAVE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

// The state of a run besides its tensors. Conventional names: texts "config", "command", "version", "mesh";
// integers "sampler.seed", "sampler.epoch", "sampler.position", "optimizer.step"; rank_state "rng.dp_shard".
struct CheckpointState {
  std::map<std::string, std::string> texts = {};       // UTF-8; rank 0's are saved
  std::map<std::string, std::int64_t> integers = {};   // rank 0's are saved
  std::map<std::string, std::string> rank_state = {};  // bytes, each rank's own; no '/' in names
};

struct SaveOptions {
  int keep_last = 0;  // keeps the newest N checkpoints, this one included; later steps always stay; 0: all
  // Steps that the run went back behind when it resumed, StepsAfter(resumed) in step_folders.h: damaged, or of an
  // attempt that was given up. They are removed before others, so that those that the run depends on stay.
  std::vector<std::int64_t> superseded = {};
};

struct SaveReport {
  std::string folder;      // "run/step-000001000"
  std::int64_t bytes = 0;  // sum over all ranks' files
};

absl::StatusOr<SaveReport> SaveCheckpoint(const comm::Communicator& comm, const std::string& root,
                                          std::int64_t step, absl::Span<const TensorPiece> pieces,
                                          const CheckpointState& state, const SaveOptions& options = {});

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SAVE_H_
