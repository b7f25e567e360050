#include "tools/gpt_training/presets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace plait::gpt_training {
namespace {

struct Size {
  const char* name;
  std::int64_t n_layer, n_head, n_embd, block_size, batch_size;
};

constexpr Size kSmall[] = {{"shakespeare-cpu", 4, 4, 128, 64, 12}, {"shakespeare", 6, 6, 384, 256, 64}};
constexpr Size kLarge[] = {{"gpt2", 12, 12, 768, 1024, 64},        {"gpt2-medium", 24, 16, 1024, 1024, 64},
                           {"gpt2-large", 36, 20, 1280, 1024, 64}, {"gpt2-xl", 48, 25, 1600, 1024, 64},
                           {"llama2B", 10, 32, 4096, 1024, 1},     {"llama7B", 32, 32, 4096, 1024, 1}};

Config Sized(const Size& size) {
  Config config;
  config.preset = size.name;
  config.n_layer = size.n_layer;
  config.n_head = size.n_head;
  config.n_embd = size.n_embd;
  config.block_size = size.block_size;
  config.batch_size = size.batch_size;
  return config;
}

Config Small(const Size& size) {
  Config config = Sized(size);
  if (config.preset != "shakespeare") return config;
  config.dropout = 0.2;
  config.max_iters = config.lr_decay_iters = 5000;
  config.eval_iters = 200;
  return config;
}

Config Large(const Size& size) {
  Config config = Sized(size);
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
  for (const Size& size : kSmall) names.emplace_back(size.name);
  for (const Size& size : kLarge) names.emplace_back(size.name);
  return names;
}

absl::StatusOr<Config> PresetNamed(const std::string& name) {
  const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  for (const Size& size : kSmall) {
    if (dashed == size.name) return Small(size);
  }
  for (const Size& size : kLarge) {
    if (dashed == size.name) return Large(size);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--preset=", name, ": expected one of ", absl::StrJoin(PresetNames(), ", ")));
}

}  // namespace plait::gpt_training
