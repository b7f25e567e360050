// --save-model: the trained parameters in one safetensors file, by their names in the state dict, for programs whose
// model has no Hugging Face layout.
//
//   PLAIT_RETURN_IF_ERROR(ProbeModelFolder(settings.save_model, run));                     // before training
//   PLAIT_RETURN_IF_ERROR(SaveModel(trainer.model(), settings.save_model, run));           // after training
//
// Collective; errors begin with the flag and are the same on all ranks. Both do nothing if `folder` is empty.
#ifndef PLAIT_TOOLS_TRAINING_MODEL_FILE_H_
#define PLAIT_TOOLS_TRAINING_MODEL_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

// Checks that the directory, as the user gave it, exists or can be created and is writable.
absl::Status ProbeModelFolder(const std::string& folder, const Run& run);

// Rank 0 writes all parameters, unsharded and in compute dtype, to FOLDER/model.safetensors. Does nothing if the run
// was stopped by a signal.
absl::Status SaveModel(ShardedModel& model, const std::string& folder, const Run& run);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_MODEL_FILE_H_
