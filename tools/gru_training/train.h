// Training on labelled sequences, shared by train_gru and train_video.
//
//   PrintSettings(run);
//   ...
//   return TrainOnSequences(settings, run, {.set = set, .name = "UCI HAR Dataset"});
#ifndef PLAIT_TOOLS_GRU_TRAINING_TRAIN_H_
#define PLAIT_TOOLS_GRU_TRAINING_TRAIN_H_

#include "absl/status/status.h"
#include "tools/gru_training/gru_task.h"
#include "tools/gru_training/settings.h"
#include "tools/training/program.h"

namespace plait::gru_training {

// Revision, ranks, settings and device.
void PrintSettings(const training::Run& run);

// Collective. Trains one network, or --ensemble-size of them; prints their configuration, progress, and at the end each
// rank's timers. An ensemble changes settings.seed.
absl::Status TrainOnSequences(GruSettings& settings, training::Run& run, const Sequences& sequences);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_TRAIN_H_
