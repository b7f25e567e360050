// Settings by name: model sizes with the training that belongs to them.
//
//   PLAIT_ASSIGN_OR_RETURN(Config config, PresetNamed("gpt2"));   // 12 layers, 12 heads, 768 wide, block
//   1024
#ifndef PLAIT_TOOLS_GPT_TRAINING_PRESETS_H_
#define PLAIT_TOOLS_GPT_TRAINING_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/gpt_training/config.h"

namespace plait::gpt_training {

// shakespeare-cpu, shakespeare (nanoGPT's two settings for a small text), gpt2, gpt2-medium, gpt2-large,
// gpt2-xl (Radford et al. 2019, table 2), llama2B, llama7B (their widths and depths in a GPT), all without
// biases; sizes are those of models/gpt/options.h. Large ones are trained as wordplay's runs: 6e-4, warm-up
// over 100 of 1000 steps. "_" counts as "-". InvalidArgument with the nearest name.
absl::StatusOr<Config> PresetNamed(const std::string& name);

std::vector<std::string> PresetNames();

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_PRESETS_H_
