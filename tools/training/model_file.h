// --save-model: the trained parameters in one safetensors file, by their names in the state dict, for programs whose
// model has no Hugging Face layout; the other programs use the first two functions only.
//
//   PLAIT_RETURN_IF_ERROR(ProbeModelFolder(settings.save_model, run));                     // before training
//   PLAIT_RETURN_IF_ERROR(SaveModel(trainer.model(), settings.save_model, run));           // after training
//
// Collective; errors begin with the flag and are the same on all ranks.
#ifndef PLAIT_TOOLS_TRAINING_MODEL_FILE_H_
#define PLAIT_TOOLS_TRAINING_MODEL_FILE_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

// Checks that the directory, as the user gave it, exists or can be created and is writable, if it is not empty.
absl::Status ProbeModelFolder(const std::string& folder, const Run& run);

// Rank 0 calls `write` while the others wait, which may take longer than --timeout: `values`, empty on other ranks, say
// how much it writes. Returns its status on all ranks.
absl::Status WriteModel(const Run& run, const std::map<std::string, at::Tensor>& values,
                        absl::FunctionRef<absl::Status()> write);

// Rank 0 writes all parameters, unsharded and in compute dtype, to FOLDER/model.safetensors. Does nothing if
// `folder` is empty or the run was stopped by a signal.
absl::Status SaveModel(ShardedModel& model, const std::string& folder, const Run& run);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_MODEL_FILE_H_
