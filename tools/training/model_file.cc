#include "tools/training/model_file.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/safetensors/model.h"

namespace plait::training {
namespace {

namespace safetensors = data::safetensors;

safetensors::DType FileType(at::ScalarType type) {
  if (type == at::kDouble) return safetensors::DType::kF64;
  if (type == at::kHalf) return safetensors::DType::kF16;
  return type == at::kBFloat16 ? safetensors::DType::kBF16 : safetensors::DType::kF32;
}

}  // namespace

absl::Status ProbeModelFolder(const std::string& folder, const Run& run) {
  absl::Status writable;
  if (run.world.rank() == 0 && !folder.empty()) {
    writable = base::Prefixed(base::ProbeWritableFolder(base::FromUser(folder)), "--save-model");
  }
  return run.world.Agree(writable);
}

absl::Status SaveModel(ShardedModel& model, const std::string& folder, const Run& run) {
  if (folder.empty() || run.stopped) return absl::OkStatus();
  const std::map<std::string, at::Tensor> values = model.WholeParameters();
  PLAIT_RETURN_IF_ERROR(model.status());
  const std::string path = base::FromUser(folder);
  absl::Status written;
  if (run.world.rank() == 0) {
    std::vector<safetensors::TensorView> views;
    for (const auto& [name, value] : values) {
      views.push_back({name, {FileType(value.scalar_type()), value.sizes().vec()}, value.const_data_ptr()});
    }
    written = base::Prefixed(safetensors::WriteModel(path, views, {}), "--save-model");
  }
  PLAIT_RETURN_IF_ERROR(run.world.Agree(written));
  run.log.Info(absl::StrCat("model saved in ", path, "/model.safetensors"));
  return absl::OkStatus();
}

}  // namespace plait::training
