#include "tools/text_training/save_model.h"

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "tools/text_training/saved_model.h"

namespace plait::text_training {

absl::Status ProbeSaveModel(const TextSettings& settings, const training::Run& run) {
  absl::Status writable;
  if (run.world.rank() == 0 && !settings.save_model.empty()) {
    writable = base::Prefixed(base::ProbeWritableFolder(base::FromUser(settings.save_model)), "--save-model");
  }
  return run.world.Agree(writable);
}

absl::Status SaveModel(const TextSettings& settings, const training::Run& run, const ModelOptions& options,
                       const Corpus& corpus, training::ShardedModel& model) {
  if (settings.save_model.empty()) return absl::OkStatus();
  const bool writes = run.world.rank() == 0;
  const std::map<std::string, at::Tensor> values = model.WholeParameters();
  PLAIT_RETURN_IF_ERROR(model.status());
  const std::string folder = base::FromUser(settings.save_model);
  absl::Status written;
  if (writes) {
    const auto whole =
        MakeModel(options, at::TensorOptions(at::kMeta).dtype(values.begin()->second.scalar_type()));
    for (const models::ParameterUnit& unit : whole->units()) {
      for (const models::ParameterSpec& parameter : unit.parameters) {
        models::Materialize(parameter.tensor, values.at(parameter.name));
      }
    }
    written = base::Prefixed(SaveHuggingFace(*whole, folder, SpecialTokensOf(corpus.tokenizer.get())),
                             "--save-model");
  }
  PLAIT_RETURN_IF_ERROR(run.world.Agree(written));
  run.log.Info(absl::StrCat("model saved in ", folder));
  return absl::OkStatus();
}

}  // namespace plait::text_training
