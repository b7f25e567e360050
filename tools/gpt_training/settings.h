// Settings of train_gpt, their defaults and presets.
//
// Defaults are nanoGPT's settings for CPUs (Karpathy 2022, config/train_shakespeare_char.py, README).
#ifndef PLAIT_TOOLS_GPT_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_GPT_TRAINING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/moe/options.h"
#include "tools/text_training/settings.h"

namespace plait::gpt_training {

// A mixture of experts in place of the mlp of blocks (models/moe/options.h).
struct MoeSettings {
  bool used = false;  // --moe
  std::int64_t experts = 8, top_k = 2, every = 1;
  std::int64_t hidden = 0, shared_hidden = 0;  // 0: 4 n_embd; 0: no shared expert
  std::string gate = "top-k";
  double balance_weight = 0.01, z_weight = 0, bias_rate = 0.001, capacity_factor = 0;
  std::int64_t chunks = 1;
  std::string replicas = "home";
  std::int64_t replica_slots = 2;
  double link_bytes_per_second = 0, rank_flops = 0;  // of the cost model
};

struct GptSettings final : text_training::TextSettings {
  GptSettings();

  std::string preset = "shakespeare-cpu";
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;
  double dropout = 0;
  bool bias = false;
  MoeSettings moe = {};

  void Bind(training::SettingsTable& table) override;
  // --preset: shakespeare-cpu, shakespeare (nanoGPT's two settings for a small text), gpt2, gpt2-medium,
  // gpt2-large, gpt2-xl (Radford et al. 2019, table 2), llama2B, llama7B (a GPT of their widths and depths),
  // all without biases; sizes are those of models/gpt/options.h. The large ones are trained as wordplay's runs:
  // learning rate 6e-4, 1000 steps. "_" counts as "-". INVALID_ARGUMENT with the list of presets for another name.
  absl::Status ChooseDefaults(training::SettingsTable& table) override;
  absl::Status CheckGiven(const training::SettingsTable& table) const override;
  void TakeSizes(const gpt::GptOptions&
                     options);  // of a model's files; flags given must agree (SettingsTable::CheckUnchanged)
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;

  text_training::ModelOptions Options(std::int64_t vocabulary_size) const override;
  // Sets the options that concern training alone (dropout, weights of gate losses, capacity, chunks, replicas) from
  // the flags, in options that a checkpoint or files have given.
  void ChooseTraining(gpt::GptOptions& options) const;
  // Options of the experts; empty without --moe.
  moe::MoeOptions Experts() const;
  std::vector<std::string> mesh_axes() const override { return {"pp", "cp", "lp", "tp", "ep"}; }

 private:
  void BindExperts(training::SettingsTable& table);
  absl::Status CheckExperts() const;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_SETTINGS_H_
