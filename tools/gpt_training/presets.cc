#include "tools/gpt_training/presets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "models/gpt/options.h"

namespace plait::gpt_training {
namespace {

struct Preset {
  const char* name;
  const char* sizes;  // models/gpt/options.h's name
  std::int64_t batch_size;
};

constexpr Preset kSmall[] = {{"shakespeare-cpu", "cpu", 12}, {"shakespeare", "shakespeare", 64}};
constexpr Preset kLarge[] = {
    {"gpt2", "gpt2", 64},       {"gpt2-medium", "gpt2-medium", 64}, {"gpt2-large", "gpt2-large", 64},
    {"gpt2-xl", "gpt2-xl", 64}, {"llama2B", "llama2B", 1},          {"llama7B", "llama7B", 1}};

absl::StatusOr<Config> Sized(const Preset& preset) {
  PLAIT_ASSIGN_OR_RETURN(const gpt::GptOptions sizes, gpt::PresetNamed(preset.sizes));
  Config config;
  config.preset = preset.name;
  config.n_layer = sizes.n_layer;
  config.n_head = sizes.n_head;
  config.n_embd = sizes.n_embd;
  config.block_size = sizes.block_size;
  config.dropout = sizes.dropout;
  config.batch_size = preset.batch_size;
  return config;
}

absl::StatusOr<Config> Small(const Preset& preset) {
  PLAIT_ASSIGN_OR_RETURN(Config config, Sized(preset));
  if (config.preset != "shakespeare") return config;
  config.max_iters = config.lr_decay_iters = 5000;
  config.eval_iters = 200;
  return config;
}

absl::StatusOr<Config> Large(const Preset& preset) {
  PLAIT_ASSIGN_OR_RETURN(Config config, Sized(preset));
  config.max_iters = 1000;
  config.learning_rate = 6e-4;
  config.min_lr = 6e-5;
  config.lr_decay_iters = 600000;
  config.beta2 = 0.95;
  config.eval_interval = 100;
  config.eval_iters = 200;
  return config;
}

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kSmall) names.emplace_back(preset.name);
  for (const Preset& preset : kLarge) names.emplace_back(preset.name);
  return names;
}

absl::StatusOr<Config> PresetNamed(const std::string& name) {
  const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  for (const Preset& preset : kSmall) {
    if (dashed == preset.name) return Small(preset);
  }
  for (const Preset& preset : kLarge) {
    if (dashed == preset.name) return Large(preset);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--preset=", name, ": expected one of ", absl::StrJoin(PresetNames(), ", ")));
}

}  // namespace plait::gpt_training
