// All settings of train_gru, with their defaults; those of another data set extend them.
#ifndef PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_

#include <string>
#include <vector>

#include "models/gru/layer_parallel/gru_step.h"
#include "tools/training/settings.h"

namespace plait::gru_training {

struct GruSettings : training::Settings {
  GruSettings();

  int log_interval = 10;
  double percent_data = 1.0;
  int ensemble_size = 1;

  int sequence_length = 128;
  double tf = 128.0;
  int hidden_size = 100;
  int num_layers = 2;
  std::string gru;
  bool implicit_serial = false;

  int epochs = 4;
  double lr = 0.001;
  bool use_sgd = false;

  std::string lp_coarse_step = "frozen";
  std::vector<int> lp_coarse_hold = {2, 4};
  int lp_print = 0, lp_braid_print = 0;

  std::string data_dir;

  void Bind(training::SettingsTable& table) override;
  // Where the sequences come from.
  virtual void BindData(training::SettingsTable& table);
  // Chooses the cell.
  void Complete(const std::vector<comm::MeshAxis>& axes) override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
  // FailedPrecondition for a last.h5 of earlier versions.
  absl::Status CheckResume(const std::string& folder) const override;
  models::ModelSizes Sizes() const override {
    return {.layers = num_layers, .shapes = {{num_layers, hidden_size, hidden_size}}};
  }
  std::vector<std::string> mesh_axes() const override { return {"lp"}; }
  std::string default_axis() const override { return "lp"; }
  bool blocks_are_steps() const override { return false; }
  // Products of float32 numbers that are rounded to bfloat16: parameters stay float32.
  at::ScalarType compute_type() const override { return master_type(); }

  // The cell of the network that is trained, and of the serial one that tests its parameters.
  bool trains_implicit() const { return gru == "implicit"; }
  bool tests_implicit() const { return implicit_serial || trains_implicit(); }

  gru::GruStepOptions StepOptions() const;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_
