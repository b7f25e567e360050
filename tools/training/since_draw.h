// Sums over the steps since the last draw of the history, in a checkpoint: a run that is stopped between two draws and
// resumed records the same numbers as an uninterrupted one. Each rank has its own.
#ifndef PLAIT_TOOLS_TRAINING_SINCE_DRAW_H_
#define PLAIT_TOOLS_TRAINING_SINCE_DRAW_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"

namespace plait::training {

// By the name of the history's metric; empty: no step since the last draw.
using SinceDraw = std::map<std::string, double>;

// NaN if the sums, or this one, are not known.
double Since(const std::optional<SinceDraw>& sums, const std::string& name);

// Every rank has sums of the same names.
void SaveSinceDraw(const SinceDraw& sums, const comm::DeviceMesh& mesh, parallel::CheckpointState& state);

// What this rank saved. nullopt, sums that are not known, if the checkpoint is of another mesh. Empty also for checkpoints
// of earlier versions, which have none. NOT_FOUND or DATA_LOSS of a damaged checkpoint. Local.
absl::StatusOr<std::optional<SinceDraw>> ReadSinceDraw(parallel::Checkpoint& checkpoint,
                                                       const comm::DeviceMesh& mesh);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SINCE_DRAW_H_
