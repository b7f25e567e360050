// All settings of train_gru, with their defaults; train_video extends them.
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
  // Binds the flags of the data.
  virtual void BindData(training::SettingsTable& table);
  // Chooses the cell.
  void Complete(const std::vector<comm::MeshAxis>& axes) override;
  std::vector<std::string> DerivedFlags(const std::vector<comm::MeshAxis>& axes) const override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
  // FAILED_PRECONDITION if `folder` is a file, or has a last.h5: the checkpoints of earlier versions.
  absl::Status CheckResume(const std::string& folder) const override;
  models::ModelSizes Sizes() const override {
    return {.layers = num_layers, .shapes = {{num_layers, hidden_size, hidden_size}}};
  }
  std::vector<std::string> mesh_axes() const override { return {"lp"}; }
  std::string default_axis() const override { return "lp"; }
  bool blocks_are_steps() const override { return false; }
  // The master type also for --dtype=bfloat16, in which only the factors of products are rounded (gru::GruProducts).
  at::ScalarType compute_type() const override { return master_type(); }

  // Whether the trained network, and the serial one that tests its parameters, have the implicit cell.
  bool trains_implicit() const { return gru == "implicit"; }
  bool tests_implicit() const { return implicit_serial || trains_implicit(); }

  gru::GruStepOptions StepOptions() const;

 private:
  std::string DerivedCell(const std::vector<comm::MeshAxis>& axes) const;

  bool derives_cell_ = false;  // where --gru is not given
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_
