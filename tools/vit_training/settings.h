// All settings of train_vit, with their defaults: a ViT-L/16 with mean pooling, on synthetic images.
#ifndef PLAIT_TOOLS_VIT_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_VIT_TRAINING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/vit/options.h"
#include "tools/training/optimizer_settings.h"
#include "tools/training/settings.h"

namespace plait::vit_training {

// Key in VitTask::facts: the class names, one per line.
inline constexpr char kClassNames[] = "class_names";

struct VitSettings final : training::Settings {
  VitSettings() {
    batch_size = 128;
    history_name = "train_dataset.h5";
  }

  std::string preset = "vit-large-mean";
  std::int64_t image_size = 224, patch_size = 16;
  std::int64_t dim = 1024, depth = 24, heads = 16, head_dim = 64, mlp_dim = 4096;
  std::int64_t classes = 1000;
  std::string pool = "mean", attn = "sdpa";
  bool qkv_bias = false;
  double dropout = 0, norm_eps = 1e-6;
  bool summary_only = false;

  std::string data = "fake", augment = "none";
  std::int64_t fake_samples = 1'000'000, max_samples = 0;

  std::int64_t max_iters = 100, epochs = 0;
  training::OptimizerSettings optimizer = {.learning_rate = 3e-4, .weight_decay = 0.05};

  bool evaluate = true;
  std::int64_t test_batch_size = 64, log_interval = 1;
  std::string init_from = "scratch", save_model;
  bool has_initial_model() const override { return init_from != "scratch"; }

  void Bind(training::SettingsTable& table) override;
  // --preset: sizes of models/vit/options.h. "_" counts as "-". INVALID_ARGUMENT with the list of presets for another
  // name.
  absl::Status ChooseDefaults(training::SettingsTable& table) override;
  // If only one of --max-iters and --epochs was given, above 0, the other is 0, whatever a checkpoint has.
  void Complete(const std::vector<comm::MeshAxis>& axes) override;
  absl::Status CheckGiven(const training::SettingsTable& table) const override;
  absl::Status CheckStart() const override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
  models::ModelSizes Sizes() const override {
    return initial_model().empty() ? SizesOf(Options(/*class_count=*/1)) : models::ModelSizes();
  }
  std::vector<std::string> mesh_axes() const override { return {"pp", "cp", "lp", "tp"}; }
  bool runs_on_one_rank() const override { return summary_only; }

  // Options of a model with `class_count` classes.
  vit::VitOptions Options(std::int64_t class_count) const;
  // The directory of --init-from; empty for "scratch".
  std::string initial_model() const;

 private:
  bool only_max_iters_ = false, only_epochs_ = false;  // which of the two was given, above 0
};

}  // namespace plait::vit_training

#endif  // PLAIT_TOOLS_VIT_TRAINING_SETTINGS_H_
