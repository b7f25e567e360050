// --save-model: the trained parameters in one safetensors file, by their names in the state dict, for programs whose model has no
// layout of Hugging Face's.
//
//   PLAIT_RETURN_IF_ERROR(ProbeModelFolder(settings.save_model, run));                     // before training
//   PLAIT_RETURN_IF_ERROR(SaveModel(trainer.model(), settings.save_model, run));           // behind it
//
// Collective; errors begin with the flag and are the same on all ranks. Without a folder both do nothing.
#ifndef PLAIT_TOOLS_TRAINING_MODEL_FILE_H_
#define PLAIT_TOOLS_TRAINING_MODEL_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

// That the folder, as the user gives it, is there and can be written.
absl::Status ProbeModelFolder(const std::string& folder, const Run& run);

// Rank 0 writes the parameters of all ranks, whole and in compute dtype, into model.safetensors. Nothing where the run was stopped.
absl::Status SaveModel(ShardedModel& model, const std::string& folder, const Run& run);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_MODEL_FILE_H_
