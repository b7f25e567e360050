#include "tools/model_export/export.h"

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "models/model_sizes.h"
#include "models/vit/safetensors.h"
#include "models/vit/vit.h"
#include "tools/model_export/checkpoint_model.h"
#include "tools/text_training/saved_model.h"
#include "tools/training/settings_table.h"
#include "tools/vit_training/model_files.h"
#include "tools/vit_training/settings.h"

namespace plait::model_export {
namespace {

using parallel::Checkpoint;

// Settings and facts of the run that wrote it.
training::NamedValues SettingsOf(const Checkpoint& checkpoint) {
  training::NamedValues values;
  for (const auto& [name, value] : checkpoint.texts()) {
    absl::string_view setting = name;
    if (absl::ConsumePrefix(&setting, "setting.")) values.emplace(setting, value);
  }
  return values;
}

absl::Status ExportText(Checkpoint& checkpoint, const std::string& out) {
  PLAIT_ASSIGN_OR_RETURN(const text_training::SavedModel saved, text_training::SavedModelOf(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(const at::ScalarType type, StoredType(checkpoint));
  const auto model = text_training::MakeModel(saved.options, at::TensorOptions(at::kMeta).dtype(type));
  PLAIT_RETURN_IF_ERROR(ReadParameters(checkpoint, *model));
  return text_training::SaveHuggingFace(*model, out, saved.special);
}

absl::StatusOr<vit::VitOptions> VitOptionsOf(const Checkpoint& checkpoint) {
  const training::NamedValues values = SettingsOf(checkpoint);
  vit_training::VitSettings settings;
  training::SettingsTable table;
  settings.Bind(table);
  std::vector<std::string> changes;
  PLAIT_RETURN_IF_ERROR(base::Prefixed(table.Adopt(values, &changes), checkpoint.folder()));
  const auto number = [&](const std::string& name) -> absl::StatusOr<std::int64_t> {
    const auto found = values.find(name);
    std::int64_t value = 0;
    if (found != values.end() && absl::SimpleAtoi(found->second, &value) && value > 0) return value;
    return absl::DataLossError(
        absl::StrCat(checkpoint.folder(), ": setting.", name, ": expected a positive number"));
  };
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t classes, number("classes"));
  vit::VitOptions options = settings.Options(classes);
  PLAIT_ASSIGN_OR_RETURN(options.channels, number("channels"));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(vit::Validate(options), checkpoint.folder()));
  const Checkpoint::Totals held = checkpoint.TotalsOf("model");
  PLAIT_RETURN_IF_ERROR(base::Prefixed(
      models::CheckHeld(vit::SizesOf(options), {held.tensors, held.elements}), checkpoint.folder()));
  return options;
}

// Checkpoints of earlier versions have none.
std::vector<std::string> ClassNamesOf(const Checkpoint& checkpoint) {
  const auto all = checkpoint.texts().find(vit_training::kModelClassNames);
  if (all != checkpoint.texts().end()) return absl::StrSplit(all->second, '\n');
  const training::NamedValues values = SettingsOf(checkpoint);
  const auto found = values.find(vit_training::kClassNames);
  if (found == values.end()) return {};
  return absl::StrSplit(found->second, '\n');
}

absl::Status ExportVit(Checkpoint& checkpoint, const std::string& out) {
  PLAIT_ASSIGN_OR_RETURN(const vit::VitOptions options, VitOptionsOf(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(const at::ScalarType type, StoredType(checkpoint));
  const vit::Vit model(options, at::TensorOptions(at::kMeta).dtype(type));
  PLAIT_RETURN_IF_ERROR(ReadParameters(checkpoint, model));
  // Checkpoints of earlier versions have none.
  const auto preprocessor = checkpoint.texts().find(vit_training::kPreprocessorText);
  return vit::SaveHuggingFaceVit(
      model, out, ClassNamesOf(checkpoint),
      vit_training::WithPreprocessor(preprocessor == checkpoint.texts().end() ? "" : preprocessor->second));
}

}  // namespace

absl::StatusOr<std::string> ExportModel(const std::string& checkpoint, const std::string& out) {
  PLAIT_ASSIGN_OR_RETURN(Checkpoint opened, OpenNewest(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(const std::string program, opened.Text("program"));
  const bool is_text = absl::StartsWith(program, "train_gpt ") || absl::StartsWith(program, "train_llama ");
  if (!is_text && !absl::StartsWith(program, "train_vit ")) {
    return absl::InvalidArgumentError(absl::StrCat(
        opened.folder(), ": expected a checkpoint of train_gpt, train_llama or train_vit; this one is of ",
        program));
  }
  PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFolder(out), "--out"));
  PLAIT_RETURN_IF_ERROR(is_text ? ExportText(opened, out) : ExportVit(opened, out));
  return opened.folder();
}

}  // namespace plait::model_export
