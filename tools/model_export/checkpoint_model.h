// Reads a model's unsharded parameters from a checkpoint of any strategy and mesh, in one process.
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

// The type of the parameters in the checkpoint, that of the optimizer's master copy: float32 or float64. DATA_LOSS for
// a checkpoint without a model.
absl::StatusOr<at::ScalarType> StoredType(const parallel::Checkpoint& checkpoint);

// Reads the parameters of `model`, converted to their types; those on the meta device are given memory. DATA_LOSS if
// the checkpoint lacks one or has it in another shape.
absl::Status ReadParameters(parallel::Checkpoint& checkpoint, const models::BlockModel& model);

}  // namespace plait::model_export

#endif  // PLAIT_TOOLS_MODEL_EXPORT_CHECKPOINT_MODEL_H_
