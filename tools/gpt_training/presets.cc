#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "models/gpt/options.h"
#include "tools/gpt_training/settings.h"

namespace plait::gpt_training {
namespace {

struct Preset {
  const char* name;
  const char* sizes;  // models/gpt/options.h's name
  std::int64_t batch_size;
  bool large;
};

constexpr Preset kPresets[] = {{"shakespeare-cpu", "cpu", 12, false},
                               {"shakespeare", "shakespeare", 64, false},
                               {"gpt2", "gpt2", 64, true},
                               {"gpt2-medium", "gpt2-medium", 64, true},
                               {"gpt2-large", "gpt2-large", 64, true},
                               {"gpt2-xl", "gpt2-xl", 64, true},
                               {"llama2B", "llama2B", 1, true},
                               {"llama7B", "llama7B", 1, true}};

absl::StatusOr<training::NamedValues> ValuesOf(const Preset& preset) {
  PLAIT_ASSIGN_OR_RETURN(const gpt::GptOptions sizes, gpt::PresetNamed(preset.sizes));
  training::NamedValues values = {
      {"n_layer", absl::StrCat(sizes.n_layer)}, {"n_head", absl::StrCat(sizes.n_head)},
      {"n_embd", absl::StrCat(sizes.n_embd)},   {"block_size", absl::StrCat(sizes.block_size)},
      {"dropout", absl::StrCat(sizes.dropout)}, {"batch_size", absl::StrCat(preset.batch_size)}};
  if (absl::string_view(preset.name) == "shakespeare") {
    values.insert({{"max_iters", "5000"}, {"lr_decay_iters", "5000"}, {"eval_iters", "200"}});
  }
  if (preset.large) {
    values.insert({{"max_iters", "1000"},
                   {"learning_rate", "6e-4"},
                   {"min_lr", "6e-5"},
                   {"lr_decay_iters", "600000"},
                   {"beta2", "0.95"},
                   {"eval_interval", "100"},
                   {"eval_iters", "200"}});
  }
  return values;
}

}  // namespace

absl::Status GptSettings::ChooseDefaults(training::SettingsTable& table) {
  const std::string dashed = absl::StrReplaceAll(preset, {{"_", "-"}});
  std::vector<std::string> names;
  for (const Preset& known : kPresets) {
    names.emplace_back(known.name);
    if (dashed != known.name) continue;
    preset = dashed;
    PLAIT_ASSIGN_OR_RETURN(const training::NamedValues values, ValuesOf(known));
    for (const auto& [name, value] : values) PLAIT_RETURN_IF_ERROR(table.SetDefault(name, value));
    return optimizer.ChooseDefaults(table);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--preset=", preset, ": expected one of ", absl::StrJoin(names, ", ")));
}

}  // namespace plait::gpt_training
