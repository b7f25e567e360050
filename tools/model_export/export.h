// The model of a checkpoint, written in Hugging Face's layout.
#ifndef PLAIT_TOOLS_MODEL_EXPORT_EXPORT_H_
#define PLAIT_TOOLS_MODEL_EXPORT_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"

namespace plait::model_export {

// Reads `checkpoint`, one of train_gpt, train_llama or train_vit or a directory of such, and writes config.json and
// model.safetensors into `out`, which is made where it is missing. Returns the checkpoint that was read. InvalidArgument for
// another program's checkpoint; FailedPrecondition or InvalidArgument for a model that Hugging Face's classes cannot hold;
// errors of files name them. Nothing is half-written. Local.
absl::StatusOr<std::string> ExportModel(const std::string& checkpoint, const std::string& out);

}  // namespace plait::model_export

#endif  // PLAIT_TOOLS_MODEL_EXPORT_EXPORT_H_
