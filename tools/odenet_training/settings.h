// All settings of train_odenet, with their defaults; --problem chooses some of them.
#ifndef PLAIT_TOOLS_ODENET_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_ODENET_TRAINING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/odenet/options.h"
#include "tools/training/settings.h"

namespace plait::odenet_training {

struct OdeNetSettings final : training::Settings {
  std::string problem = "peaks";
  std::string data;
  std::int64_t samples = 5000, validation_samples = 200;  // of peaks
  double train_fraction = 0.75;                           // of indian_pines
  std::int64_t max_samples = 0;

  // The network; --problem chooses other defaults (ChooseDefaults).
  std::int64_t layers = 32, channels = 8;
  double final_time = 5;
  std::string form = "dense", activation = "tanh", time_weights = "per-layer";
  std::int64_t controls = 0;
  double initial_weights = -1;
  std::int64_t hidden = 0;

  int epochs = 20, eval_interval = 1;
  double lr = 1e-2, gamma = 1;
  double tikhonov = 0, tikhonov_time = 0;
  std::int64_t test_batch_size = 1000;

  bool nested = false;
  int nested_levels = 3, nested_cfactor = 2, nested_epochs = 0;
  std::string nested_interpolation = "constant";
  bool compare = false;
  bool study = false;
  int study_seeds = 12;
  std::string save_model;

  void Bind(training::SettingsTable& table) override;
  absl::Status ChooseDefaults(training::SettingsTable& table) override;
  absl::Status CheckGiven(const training::SettingsTable& table) const override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
  models::ModelSizes Sizes() const override;
  bool runs_on_one_rank() const override { return true; }
  std::vector<std::string> mesh_axes() const override { return {"lp"}; }
  std::string default_axis() const override { return "lp"; }

  // Options of the network of one level, for settings that pass Check. `sample`: shape of a sample;
  // `layers_of_level`: an entry of Levels().
  odenet::OdeNetOptions Network(const std::vector<std::int64_t>& sample, std::int64_t classes,
                                std::int64_t layers_of_level) const;
  // Layers of each level, the finest first: one level where there is no nested iteration.
  std::vector<std::int64_t> Levels() const;
  int EpochsOf(int level) const { return level > 0 && nested_epochs > 0 ? nested_epochs : epochs; }

 private:
  void BindNetwork(training::SettingsTable& table);
  absl::Status CheckNetwork() const;
  absl::Status CheckNested() const;
  absl::Status CheckSolver(const std::vector<comm::MeshAxis>& axes) const;
};

}  // namespace plait::odenet_training

#endif  // PLAIT_TOOLS_ODENET_TRAINING_SETTINGS_H_
