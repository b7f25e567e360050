// The files of --init-from and --save-model: Hugging Face's layout. Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_VIT_TRAINING_MODEL_FILES_H_
#define PLAIT_TOOLS_VIT_TRAINING_MODEL_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/vit/options.h"
#include "models/vit/safetensors.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"
#include "tools/vit_training/settings.h"

namespace plait::vit_training {

using InitialModel = std::optional<vit::HuggingFaceVit>;

// Opens the files of --init-from and sets the sizes of `settings` from them. nullopt without the flag, or if the run
// resumes from a checkpoint.
absl::StatusOr<InitialModel> OpenInitialModel(VitSettings& settings, const training::Run& run);

// Called before training: an error if --save-model is not writable, or Hugging Face's layout cannot hold the model.
absl::Status CheckSavedModel(const VitSettings& settings, const vit::VitOptions& options,
                             const training::Run& run);
// Rank 0 writes the parameters, in compute dtype, to --save-model; does nothing without the flag or in a stopped run.
absl::Status SaveModel(const VitSettings& settings, const vit::VitOptions& options,
                       const std::vector<std::string>& class_names, training::ShardedModel& model,
                       const training::Run& run);

}  // namespace plait::vit_training

#endif  // PLAIT_TOOLS_VIT_TRAINING_MODEL_FILES_H_
