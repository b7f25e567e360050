// The files of --init-from and --save-model: Hugging Face's layout. Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_VIT_TRAINING_MODEL_FILES_H_
#define PLAIT_TOOLS_VIT_TRAINING_MODEL_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/images/image_source.h"
#include "models/vit/options.h"
#include "models/vit/preprocessor.h"
#include "models/vit/safetensors.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"
#include "tools/vit_training/settings.h"

namespace plait::vit_training {

using InitialModel = std::optional<vit::HuggingFaceVit>;

// Opens the files of --init-from and sets the sizes of `settings` from them. nullopt without the flag, or if the run
// resumes from a checkpoint.
absl::StatusOr<InitialModel> OpenInitialModel(VitSettings& settings, const training::Run& run);

// A model's accuracy on images whose classes it numbers in another way is no accuracy: INVALID_ARGUMENT where it is
// only evaluated and has the class under another number; else a warning. `found`: the images' classes.
absl::Status CheckClassNames(const vit::HuggingFaceVit& files, const std::vector<std::string>& found,
                             const training::Run& run, bool only_evaluates);

// The names of a model's classes: the images', and behind them what the model of --init-from, or the checkpoint to resume
// from, calls others that it has. A model that is only evaluated keeps its names. Name of the checkpoint's text, with a
// line for each.
inline constexpr char kModelClassNames[] = "model.class_names";
std::vector<std::string> ClassNamesOfModel(const data::ImageSets& images, const InitialModel& files,
                                           const training::Run& run);

// How images become the model's input: as in the checkpoint to resume from, or beside the weights of --init-from; else
// scaled as these images are. Name of the checkpoint's text, which is as the file.
inline constexpr char kPreprocessorText[] = "preprocessor";
absl::StatusOr<vit::Preprocessor> PreprocessorOf(const VitSettings& settings, const data::ImageSets& images,
                                                 const training::Run& run);
// The preprocessor's file, for the writer of weights; none without a text.
hugging_face::SaveOptions WithPreprocessor(const std::string& text);

// Called before training: an error if --save-model is not writable, or Hugging Face's layout cannot hold the model.
absl::Status CheckSavedModel(const VitSettings& settings, const vit::VitOptions& options,
                             const training::Run& run);
// Rank 0 writes the parameters, in compute dtype, to --save-model; does nothing without the flag or in a stopped run.
absl::Status SaveModel(const VitSettings& settings, const vit::VitOptions& options,
                       const std::vector<std::string>& class_names, const vit::Preprocessor& preprocessor,
                       training::ShardedModel& model, const training::Run& run);

}  // namespace plait::vit_training

#endif  // PLAIT_TOOLS_VIT_TRAINING_MODEL_FILES_H_
