// The state of a run in a file: enough to go on with the same bits, on any number of ranks.
//
//   PLAIT_RETURN_IF_ERROR(SaveCheckpoint(path, state));            // rank 0
//   PLAIT_RETURN_IF_ERROR(LoadCheckpoint(path, state));            // every rank; then agree
//
// A tensor archive (data/checkpoint/tensor_archive.h): parameter.NAME, exp_avg.NAME, exp_avg_sq.NAME, and the
// texts
//   program     "train_gru 1": the format of this file
//   run         NAME=VALUE lines of what must be the same to go on: network, data, order of the samples
//   progress    epoch, samples taken in it, optimizer steps, draws of the history
// A file appears whole or not at all; what was there stays on any error. Local.
#ifndef PLAIT_TOOLS_GRU_TRAINING_CHECKPOINT_H_
#define PLAIT_TOOLS_GRU_TRAINING_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "data/sampler.h"
#include "tools/gru_training/network.h"
#include "tools/gru_training/optimizer.h"

namespace plait::gru_training {

struct Progress {
  data::SamplerState sampler;
  std::int64_t optimizer_steps = 0;
  std::int64_t history_draws = 0;
};

// Settings that make another model or another order of samples of it.
using RunSettings = std::map<std::string, std::string>;
RunSettings SettingsOf(const Config& config, int ranks, std::int64_t channels, std::int64_t classes,
                       std::int64_t samples);

// The file in a checkpoint folder; a path that is no folder stays as it is.
std::string CheckpointFile(const std::string& path);

absl::Status SaveCheckpoint(const std::string& path, const RunSettings& settings, const Progress& progress,
                            const NamedTensors& parameters, const Optimizer& optimizer);

// Overwrites parameters, optimizer and progress. One line that names the file: NotFound; DataLoss for a
// damaged file, one of another program or format; InvalidArgument for another model or data, with the setting
// that differs. Numbers are read only after all else was found right.
absl::Status LoadCheckpoint(const std::string& path, const RunSettings& settings, Progress& progress,
                            const NamedTensors& parameters, Optimizer& optimizer);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_CHECKPOINT_H_
