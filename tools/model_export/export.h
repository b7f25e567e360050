// The model of a checkpoint, written in Hugging Face's layout.
#ifndef PLAIT_TOOLS_MODEL_EXPORT_EXPORT_H_
#define PLAIT_TOOLS_MODEL_EXPORT_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"

namespace plait::model_export {

// Reads `checkpoint`, one of train_gpt, train_llama or train_vit or a directory of such, and writes config.json and
// model.safetensors into `out`, which is created if missing. Returns the path of the checkpoint that was read.
// INVALID_ARGUMENT for another program's checkpoint; FAILED_PRECONDITION or INVALID_ARGUMENT for a model that Hugging
// Face's classes cannot hold; errors of files name them. Files are written atomically. Local.
absl::StatusOr<std::string> ExportModel(const std::string& checkpoint, const std::string& out);

}  // namespace plait::model_export

#endif  // PLAIT_TOOLS_MODEL_EXPORT_EXPORT_H_
