#include <vector>

#include "absl/strings/match.h"
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

absl::Status Choose(const Preset& preset, GptSettings& s) {
  PLAIT_ASSIGN_OR_RETURN(const gpt::GptOptions sizes, gpt::PresetNamed(preset.sizes));
  s.preset = preset.name;
  s.n_layer = sizes.n_layer;
  s.n_head = sizes.n_head;
  s.n_embd = sizes.n_embd;
  s.block_size = sizes.block_size;
  s.dropout = sizes.dropout;
  s.batch_size = preset.batch_size;
  if (s.preset == "shakespeare") {
    s.max_iters = s.lr_decay_iters = 5000;
    s.eval_iters = 200;
  }
  if (!preset.large) return absl::OkStatus();
  s.max_iters = 1000;
  s.learning_rate = 6e-4;
  s.min_lr = 6e-5;
  s.lr_decay_iters = 600000;
  s.beta2 = 0.95;
  s.eval_interval = 100;
  s.eval_iters = 200;
  return absl::OkStatus();
}

}  // namespace

absl::Status ChoosePreset(const std::string& name, GptSettings& settings) {
  const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) {
    if (dashed == preset.name) return Choose(preset, settings);
    names.emplace_back(preset.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--preset=", name, ": expected one of ", absl::StrJoin(names, ", ")));
}

std::string PresetOf(int argc, char** argv) {
  std::string name;
  for (int k = 1; k < argc; ++k) {
    const absl::string_view argument = argv[k];
    if (argument == "--preset" && k + 1 < argc) name = argv[k + 1];
    if (absl::StartsWith(argument, "--preset=")) name = std::string(argument.substr(9));
  }
  return name;
}

}  // namespace plait::gpt_training
