// Settings of programs that train a language model on text; each adds those of its model.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_TEXT_TRAINING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/text/document_index.h"
#include "tools/text_training/language_model.h"
#include "tools/training/optimizer_settings.h"
#include "tools/training/settings.h"

namespace plait::text_training {

struct TextSettings : training::Settings {
  // Names of flags that differ between programs, with "_".
  struct FlagNames {
    const char *sequence, *learning_rate;
  };
  explicit TextSettings(const FlagNames& names) : sequence_flag(names.sequence) {
    optimizer.learning_rate_flag = names.learning_rate;
  }

  std::string sequence_flag;
  std::int64_t sequence = 64;   // tokens per sequence
  std::int64_t vocab_size = 0;  // of a new model; 0: the text's

  std::string data, tokenizer = "characters", bpe_folder;
  std::string ignore_targets = "none";
  bool prepare_only = false;

  std::int64_t max_iters = 2000;
  training::OptimizerSettings optimizer = {
      .learning_rate = 1e-3, .min_lr = 1e-4, .warmup_iters = 100, .lr_decay_iters = 2000, .beta2 = 0.99};

  std::int64_t eval_interval = 250, eval_iters = 20, log_interval = 10;
  std::string sample_prompt = "What is an LLM?";
  std::int64_t sample_tokens = 256;
  std::string peak_flops = "measure";
  std::string init_from = "scratch", save_model;

  // Options of a new model.
  virtual ModelOptions Options(std::int64_t vocabulary_size) const = 0;
  models::ModelSizes Sizes() const override;
  std::vector<std::string> mesh_axes() const override { return {"pp", "cp", "lp", "tp"}; }
  absl::Status ChooseDefaults(training::SettingsTable& table) override {
    return optimizer.ChooseDefaults(table);
  }
  absl::Status CheckGiven(const training::SettingsTable& table) const override;
  void Complete(const std::vector<comm::MeshAxis>& axes) override;
  std::vector<std::string> DerivedFlags(const std::vector<comm::MeshAxis>& axes) const override;
  absl::Status CheckStart() const override;
  std::vector<std::string> narrow_types() const override { return {"bfloat16", "float16"}; }
  bool runs_on_one_rank() const override { return prepare_only; }

  std::string SequenceFlag() const;             // "block-size", without leading dashes
  data::IgnoredTargets IgnoredTargets() const;  // parsed ignore_targets
  bool draws_random_tokens() const { return data == kRandomTokens; }
  // The directory that --init-from names; empty: none.
  std::string initial_model() const;
  bool has_initial_model() const override { return !initial_model().empty(); }
  // Tokens of a step over all data-parallel ranks and micro-batches.
  std::int64_t TokensPerStep(int data_ranks) const;
  // Losses are estimated every eval_interval steps and after the last. Step 0, before training, counts.
  bool EvaluatesAt(std::int64_t step) const;

 protected:
  // Adds all flags but those of the model. `data_help` is the help of --data; `model` names the model in that of
  // --init-from.
  void BindText(training::SettingsTable& table, const std::string& data_help, const std::string& model);
  absl::Status CheckText(const std::vector<comm::MeshAxis>& axes) const;
};

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_SETTINGS_H_
