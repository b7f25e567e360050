// --save-model: the trained model in Hugging Face's layout. Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_SAVE_MODEL_H_
#define PLAIT_TOOLS_TEXT_TRAINING_SAVE_MODEL_H_

#include "absl/status/status.h"
#include "tools/text_training/language_model.h"
#include "tools/text_training/settings.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"

namespace plait::text_training {

// Before training: an error where the directory cannot be written. Without --save-model both do nothing.
absl::Status ProbeSaveModel(const TextSettings& settings, const training::Run& run);

// Rank 0 holds all parameters, in compute dtype, and writes them.
absl::Status SaveModel(const TextSettings& settings, const training::Run& run, const ModelOptions& options,
                       training::ShardedModel& model);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_SAVE_MODEL_H_
