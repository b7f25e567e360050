#include "tools/vit_training/model_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "tools/training/model_file.h"

namespace plait::vit_training {
namespace {

// nullopt if the folder has no such file.
absl::StatusOr<std::optional<vit::Preprocessor>> ReadPreprocessor(const std::string& folder,
                                                                  std::int64_t channels) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 24;
  const std::string path = absl::StrCat(folder, "/", vit::kPreprocessorFile);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  PLAIT_ASSIGN_OR_RETURN(const std::string text, data::ReadWholeFile(path, kMostBytes));
  absl::StatusOr<vit::Preprocessor> read = vit::PreprocessorFrom(text, channels);
  if (!read.ok()) return base::Prefixed(read.status(), path);
  return *std::move(read);
}

}  // namespace

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
  settings.classes = options.classes;
  return InitialModel(*std::move(files));
}

absl::Status CheckClassNames(const vit::HuggingFaceVit& files, const std::vector<std::string>& found,
                             const training::Run& run, bool only_evaluates) {
  const std::vector<std::string>& known = files.class_names();
  std::string first;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (known[k] == found[k]) continue;
    const auto place = std::find(known.begin(), known.end(), found[k]);
    if (known[k].empty() && place == known.end()) continue;
    const std::string differs = absl::StrCat(
        "--init-from: class ", k, " is ", found[k], " in the images and ",
        known[k].empty() ? "without a name" : known[k], " in the model",
        place == known.end() ? ""
                             : absl::StrCat(", which has ", found[k], " as class ", place - known.begin()));
    if (only_evaluates && place != known.end()) {
      return absl::InvalidArgumentError(differs + "; expected images of all of its classes, in its order");
    }
    if (first.empty()) first = differs;
  }
  if (!first.empty()) run.log.Warning(first);
  return absl::OkStatus();
}

std::vector<std::string> ClassNamesOfModel(const data::ImageSets& images, const InitialModel& files,
                                           const training::Run& run) {
  std::vector<std::string> names = images.class_names, known;
  if (files.has_value()) known = files->class_names();
  if (run.checkpoint.has_value()) {
    const auto kept =
        run.checkpoint->texts().find(kModelClassNames);  // checkpoints of earlier versions have none
    if (kept != run.checkpoint->texts().end()) known = absl::StrSplit(kept->second, '\n');
  }
  names.resize(std::max(names.size(), known.size()));
  for (std::size_t k = 0; k < known.size(); ++k) {
    // A class behind those of the images may have the name of one that is now trained as another.
    const bool behind =
        k >= images.class_names.size() && !absl::c_linear_search(images.class_names, known[k]);
    if ((run.settings.eval_only || behind) && !known[k].empty()) names[k] = known[k];
  }
  return names;
}

absl::StatusOr<vit::Preprocessor> PreprocessorOf(const VitSettings& settings, const data::ImageSets& images,
                                                 const training::Run& run) {
  constexpr double kUsual = 0.875;  // of the shorter side of images whose sizes differ; the others are whole
  const auto size = static_cast<double>(settings.image_size);
  vit::Preprocessor own = {.mean = images.scale.mean, .deviation = images.scale.deviation};
  if (images.rows == 0) own.centre_fraction = size / std::round(size / kUsual);
  if (run.checkpoint.has_value()) {
    const auto kept = run.checkpoint->texts().find(kPreprocessorText);
    if (kept == run.checkpoint->texts().end()) return own;  // of an earlier version
    absl::StatusOr<vit::Preprocessor> read = vit::PreprocessorFrom(kept->second, images.channels);
    if (!read.ok()) return base::Prefixed(read.status(), "--resume");
    return *std::move(read);
  }
  if (settings.initial_model().empty()) return own;
  auto found = ReadPreprocessor(settings.initial_model(), images.channels);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(run.world.Agree(found.status()), "--init-from"));
  if (!found->has_value()) return own;
  if (**found != own) {
    run.log.Info(absl::StrCat("images as the model's ", vit::kPreprocessorFile, " has them: mean ",
                              absl::StrJoin((*found)->mean, ","), ", deviation ",
                              absl::StrJoin((*found)->deviation, ","),
                              (*found)->squeezes ? ", squeezed into squares" : ""));
  }
  if ((*found)->resample != vit::kBilinear) {
    run.log.Warning(absl::StrCat(vit::kPreprocessorFile, " of the model: \"resample\" is ",
                                 (*found)->resample, "; images are resized bilinearly (", vit::kBilinear,
                                 ") here, which changes its results a little"));
  }
  return **std::move(found);
}

hugging_face::SaveOptions WithPreprocessor(const std::string& text) {
  hugging_face::SaveOptions options;
  options.descriptions[vit::kPreprocessorFile] = text;
  return options;
}

absl::Status CheckSavedModel(const VitSettings& settings, const vit::VitOptions& options,
                             const training::Run& run) {
  if (settings.save_model.empty()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(base::Prefixed(vit::CheckLayout(options), "--save-model"));
  return training::ProbeModelFolder(settings.save_model, run);
}

absl::Status SaveModel(const VitSettings& settings, const vit::VitOptions& options,
                       const std::vector<std::string>& class_names, const vit::Preprocessor& preprocessor,
                       training::ShardedModel& model, const training::Run& run) {
  if (settings.save_model.empty() || run.stopped) return absl::OkStatus();
  const std::string folder = base::FromUser(settings.save_model);
  const hugging_face::Layout layout = vit::HuggingFaceLayout();
  std::vector<hugging_face::FileTensor> tensors;
  const std::map<std::string, at::Tensor> values = model.WholeParameters();
  for (const auto& [name, value] : values) {
    for (hugging_face::FileTensor& part : layout(name, value)) tensors.push_back(std::move(part));
  }
  PLAIT_RETURN_IF_ERROR(model.status());
  PLAIT_RETURN_IF_ERROR(training::WriteModel(run, values, [&] {
    return hugging_face::Save(folder, tensors, vit::ConfigText(options, class_names),
                              WithPreprocessor(vit::PreprocessorText(preprocessor, options.image_size)));
  }));
  run.log.Info(absl::StrCat("model saved in ", folder, "/model.safetensors"));
  return absl::OkStatus();
}

}  // namespace plait::vit_training
