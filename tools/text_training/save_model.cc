#include "tools/text_training/save_model.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "tools/text_training/language_model.h"
#include "tools/training/model_file.h"

namespace plait::text_training {

absl::Status SaveModel(const TextSettings& settings, const training::Run& run, const SavedModel& saved,
                       training::ShardedModel& model) {
  if (settings.save_model.empty()) return absl::OkStatus();
  const std::map<std::string, at::Tensor> values = model.WholeParameters();
  PLAIT_RETURN_IF_ERROR(model.status());
  const std::string folder = base::FromUser(settings.save_model);
  PLAIT_RETURN_IF_ERROR(training::WriteModel(run, values, [&] {
    const auto whole =
        MakeModel(saved.options, at::TensorOptions(at::kMeta).dtype(values.begin()->second.scalar_type()));
    for (const models::ParameterUnit& unit : whole->units()) {
      for (const models::ParameterSpec& parameter : unit.parameters) {
        models::Materialize(parameter.tensor, values.at(parameter.name));
      }
    }
    return SaveHuggingFace(*whole, folder, saved.special);
  }));
  run.log.Info(absl::StrCat("model saved in ", folder));
  return absl::OkStatus();
}

}  // namespace plait::text_training
