#include "tools/vit_training/model_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"

namespace plait::vit_training {

absl::StatusOr<InitialModel> OpenInitialModel(VitSettings& settings, const training::Run& run) {
  if (settings.initial_model().empty() || run.checkpoint.has_value()) return std::nullopt;
  absl::StatusOr<vit::HuggingFaceVit> files = vit::HuggingFaceVit::Open(settings.initial_model());
  PLAIT_RETURN_IF_ERROR(base::Prefixed(run.world.Agree(files.status()), "--init-from"));
  const vit::VitOptions& options = files->options();
  settings.image_size = options.image_size;
  settings.patch_size = options.patch_size;
  settings.dim = options.dim;
  settings.depth = options.depth;
  settings.heads = options.heads;
  settings.head_dim = options.head_dim;
  settings.mlp_dim = options.mlp_dim;
  settings.norm_eps = options.norm_eps;
  settings.qkv_bias = options.qkv_bias;
  settings.pool = "class";
  return InitialModel(*std::move(files));
}

absl::Status CheckSavedModel(const VitSettings& settings, const vit::VitOptions& options,
                             const training::Run& run) {
  if (settings.save_model.empty()) return absl::OkStatus();
  absl::Status status = vit::CheckLayout(options);
  if (status.ok() && run.world.rank() == 0) {
    status = base::ProbeWritableFolder(base::FromUser(settings.save_model));
  }
  return run.world.Agree(base::Prefixed(status, "--save-model"));
}

absl::Status SaveModel(const VitSettings& settings, const vit::VitOptions& options,
                       const std::vector<std::string>& class_names, training::ShardedModel& model,
                       const training::Run& run) {
  if (settings.save_model.empty() || run.stopped) return absl::OkStatus();
  const std::string folder = base::FromUser(settings.save_model);
  const hugging_face::Layout layout = vit::HuggingFaceLayout();
  std::vector<hugging_face::FileTensor> tensors;
  for (const auto& [name, value] : model.WholeParameters()) {
    for (hugging_face::FileTensor& part : layout(name, value)) tensors.push_back(std::move(part));
  }
  PLAIT_RETURN_IF_ERROR(model.status());
  absl::Status written;
  if (run.world.rank() == 0) {
    written = hugging_face::Save(folder, tensors, vit::ConfigText(options, class_names), {});
  }
  PLAIT_RETURN_IF_ERROR(run.world.Agree(base::Prefixed(written, "--save-model")));
  run.log.Info(absl::StrCat("model saved in ", folder, "/model.safetensors"));
  return absl::OkStatus();
}

}  // namespace plait::vit_training
