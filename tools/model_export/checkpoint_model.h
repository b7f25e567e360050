// A model's parameters out of a checkpoint of any strategy and mesh, in one process.
//
//   PLAIT_ASSIGN_OR_RETURN(parallel::Checkpoint checkpoint, OpenNewest("run"));
//   gpt::Gpt model(options, at::TensorOptions(at::kMeta).dtype(at::kFloat));
//   PLAIT_RETURN_IF_ERROR(ReadParameters(checkpoint, model));
//
// Local. Errors are one line, as those of parallel/checkpoint.
#ifndef PLAIT_TOOLS_MODEL_EXPORT_CHECKPOINT_MODEL_H_
#define PLAIT_TOOLS_MODEL_EXPORT_CHECKPOINT_MODEL_H_

#include <c10/core/ScalarType.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/block_model.h"
#include "parallel/checkpoint/checkpoint.h"

namespace plait::model_export {

// `folder` is a checkpoint, or a directory whose newest complete one is opened.
absl::StatusOr<parallel::Checkpoint> OpenNewest(const std::string& folder);

// Of the parameters, as the optimizer steps them: float32 or float64. DataLoss for a checkpoint without a model.
absl::StatusOr<at::ScalarType> StoredType(const parallel::Checkpoint& checkpoint);

// Gives the model's parameters, which may be on the meta device, memory and values, converted to their types. DataLoss where
// the checkpoint lacks one or has it in another shape.
absl::Status ReadParameters(parallel::Checkpoint& checkpoint, const models::BlockModel& model);

}  // namespace plait::model_export

#endif  // PLAIT_TOOLS_MODEL_EXPORT_CHECKPOINT_MODEL_H_
