// All settings of train_gpt, with their defaults, and those that have names.
//
// Defaults are nanoGPT's setting for processors (Karpathy 2022, config/train_shakespeare_char.py, README).
#ifndef PLAIT_TOOLS_GPT_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_GPT_TRAINING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/gpt/options.h"
#include "tools/training/settings.h"

namespace plait::gpt_training {

struct GptSettings final : training::Settings {
  GptSettings();

  std::string preset = "shakespeare-cpu";
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;
  std::int64_t block_size = 64;
  double dropout = 0;
  bool bias = false;

  std::string data, tokenizer = "characters", bpe_folder;
  bool prepare_only = false;

  std::int64_t max_iters = 2000;
  double learning_rate = 1e-3, min_lr = 1e-4;
  std::int64_t warmup_iters = 100, lr_decay_iters = 2000;
  bool decay_lr = true;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99, grad_clip = 1;

  std::int64_t eval_interval = 250, eval_iters = 20, log_interval = 10;
  std::string sample_prompt = "What is an LLM?";
  std::int64_t sample_tokens = 256;
  std::string peak_flops = "none";
  std::string init_from = "scratch";

  std::vector<std::string> mesh_axes() const override { return {"pp"}; }
  void Bind(training::SettingsTable& table) override;
  // --preset: shakespeare-cpu, shakespeare (nanoGPT's two settings for a small text), gpt2, gpt2-medium,
  // gpt2-large, gpt2-xl (Radford et al. 2019, table 2), llama2B, llama7B (their widths and depths in a GPT),
  // all without biases; sizes are those of models/gpt/options.h. Large ones are trained as wordplay's runs:
  // 6e-4, warm-up over 100 of 1000 steps. "_" counts as "-". InvalidArgument that lists the names.
  absl::Status ChooseDefaults(training::SettingsTable& table) override;
  void Complete(const std::vector<comm::MeshAxis>& axes) override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
  std::vector<std::string> narrow_types() const override { return {"bfloat16", "float16"}; }
  bool runs_on_one_rank() const override { return prepare_only; }

  // Of a model that begins from scratch.
  gpt::GptOptions Options(std::int64_t vocabulary_size) const;
  // The directory that --init-from names; empty: none.
  std::string initial_model() const;
  // Of all data-parallel ranks and micro-batches.
  std::int64_t TokensPerStep(int data_ranks) const;
  // Losses are estimated every eval_interval steps and after the last. Step 0, before training, counts.
  bool EvaluatesAt(std::int64_t step) const;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_SETTINGS_H_
