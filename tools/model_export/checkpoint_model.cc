#include "tools/model_export/checkpoint_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/pieces_of_tensor.h"
#include "parallel/checkpoint/step_folders.h"

namespace plait::model_export {

absl::StatusOr<parallel::Checkpoint> OpenNewest(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(folder) / "index.h5", ignored)) {
    return parallel::Checkpoint::Open(folder);
  }
  PLAIT_ASSIGN_OR_RETURN(const std::string newest, parallel::FindLatestCheckpoint(folder));
  return parallel::Checkpoint::Open(newest);
}

absl::StatusOr<at::ScalarType> StoredType(const parallel::Checkpoint& checkpoint) {
  for (const parallel::TensorSpec& tensor : checkpoint.tensors()) {
    if (tensor.group != "model") continue;
    return tensor.dtype == at::kDouble ? at::kDouble : at::kFloat;
  }
  return absl::DataLossError(absl::StrCat(checkpoint.folder(), ": holds no model"));
}

absl::Status ReadParameters(parallel::Checkpoint& checkpoint, const models::BlockModel& model) {
  const at::NoGradGuard no_grad;
  PLAIT_ASSIGN_OR_RETURN(const at::ScalarType stored, StoredType(checkpoint));
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      const at::Tensor values = at::empty(parameter.tensor.sizes(), stored);
      PLAIT_RETURN_IF_ERROR(
          parallel::ReadTensor(checkpoint, absl::StrCat("model/", parameter.name), 0, values));
      models::Materialize(parameter.tensor, values.to(parameter.tensor.scalar_type()));
    }
  }
  return absl::OkStatus();
}

}  // namespace plait::model_export
