// All settings of train_gru, with their defaults; those of another data set extend them.
#ifndef PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_

#include <string>
#include <vector>

#include "mgrit/layer_parallel/layer_parallel.h"
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

  bool force_lp = false;
  // Chosen from the curve of gradient error against cost in docs/benchmarks.md.
  int lp_levels = 2;
  std::vector<int> lp_cfactor = {4};
  int lp_iters = 1;
  int lp_fwd_iters = 2;
  bool lp_use_downcycle = false;
  int lp_fmg_iterations = 0;
  int lp_fwd_finerelax = 0, lp_fwd_relax = 1, lp_bwd_relax = 1;
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
  std::vector<std::string> mesh_axes() const override { return {"lp"}; }
  // Products of float32 numbers that are rounded to bfloat16: parameters stay float32.
  at::ScalarType compute_type() const override { return master_type(); }

  // Whether the time steps are spread over `lp_ranks` ranks; else one rank takes them in turn.
  bool SolvesParallel(int lp_ranks) const { return lp_ranks > 1 || force_lp; }
  // The cell of the network that is trained, and of the serial one that tests its parameters.
  bool trains_implicit() const { return gru == "implicit"; }
  bool tests_implicit() const { return implicit_serial || trains_implicit(); }
  int forward_iterations() const { return lp_fwd_iters == -1 ? lp_iters : lp_fwd_iters; }

  mgrit::LayerParallelOptions SolverOptions() const;
  gru::GruStepOptions StepOptions() const;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_SETTINGS_H_
