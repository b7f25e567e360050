// --save-model: the trained model in Hugging Face's layout. Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_SAVE_MODEL_H_
#define PLAIT_TOOLS_TEXT_TRAINING_SAVE_MODEL_H_

#include "absl/status/status.h"
#include "tools/text_training/saved_model.h"
#include "tools/text_training/settings.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"

namespace plait::text_training {

// Collects all parameters, in compute dtype, on rank 0, which writes them. Not for models with experts. Does nothing
// without --save-model.
absl::Status SaveModel(const TextSettings& settings, const training::Run& run, const SavedModel& saved,
                       training::ShardedModel& model);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_SAVE_MODEL_H_
