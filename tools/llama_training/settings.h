// Settings of train_llama, with their defaults.
#ifndef PLAIT_TOOLS_LLAMA_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_LLAMA_TRAINING_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tools/text_training/settings.h"

namespace plait::llama_training {

// The defaults are a model of 33,599,744 parameters on random tokens, in batches of 16 sequences of 128 tokens per
// data-parallel rank, with the decay and betas of PyTorch's AdamW.
struct LlamaSettings final : text_training::TextSettings {
  LlamaSettings();

  std::int64_t n_layers = 24, dim = 256, n_heads = 32, n_kv_heads = 8, hidden = 720;
  double rope_theta = 10000;

  void Bind(training::SettingsTable& table) override;
  void TakeSizes(const llama::LlamaOptions&
                     options);  // of a model's files; flags given must agree (SettingsTable::CheckUnchanged)
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
  // Options of the model, with --seq-length as its maximum sequence length.
  text_training::ModelOptions Options(std::int64_t vocabulary_size) const override;
};

}  // namespace plait::llama_training

#endif  // PLAIT_TOOLS_LLAMA_TRAINING_SETTINGS_H_
