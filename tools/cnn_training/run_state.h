// What a checkpoint of train_cnn says besides its tensors: where the run stood, and which run it was.
//
//   saver.Start(state.step, PiecesOf(engine, optimizer), ToCheckpoint(state, SettingsOf(...),
//   settings_line)); PLAIT_RETURN_IF_ERROR(CheckSettings(checkpoint, SettingsOf(...)));
//   PLAIT_ASSIGN_OR_RETURN(RunState state, RunStateOf(checkpoint, world));
//
// Local. Dropout needs no state: its random numbers are streams derived from seed, step and rank.
#ifndef PLAIT_TOOLS_CNN_TRAINING_RUN_STATE_H_
#define PLAIT_TOOLS_CNN_TRAINING_RUN_STATE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "data/idx/image_set.h"
#include "data/sampler.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "tools/cnn_training/config.h"

namespace plait::cnn_training {

struct RunState {
  std::int64_t step = 0;  // steps done
  data::SamplerState sampler;
  std::int64_t history_draws = 0;
  // Of the epoch so far: this rank's part of the sum of its samples' losses, and seconds of training.
  double loss_sum = 0, seconds = 0;
};

// Settings that make another model, another order of samples, or other arithmetic of it. Not the mesh and the
// strategy: any can go on with the checkpoint of another, with the same batches over all ranks.
using RunSettings = std::map<std::string, std::string>;
RunSettings SettingsOf(const Config& config, int ranks, const data::ImageSet& set);

parallel::CheckpointState ToCheckpoint(const RunState& state, const RunSettings& settings,
                                       const std::string& flags);

// InvalidArgument for another run, with the setting that differs; DataLoss for another program's checkpoint.
absl::Status CheckSettings(const parallel::Checkpoint& checkpoint, const RunSettings& settings);

// On as many ranks as wrote it each gets its own part of the sum of losses, else rank 0 gets all parts.
absl::StatusOr<RunState> RunStateOf(parallel::Checkpoint& checkpoint, const comm::Communicator& world);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_RUN_STATE_H_
