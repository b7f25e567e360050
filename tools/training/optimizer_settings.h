// Flags of AdamW, Muon and the learning rate schedule, shared by the programs for text and for images.
//
//   OptimizerSettings optimizer = {.learning_rate = 3e-4, .learning_rate_flag = "lr"};
//   optimizer.Bind(table);
//   PLAIT_RETURN_IF_ERROR(optimizer.Check());
//   const parallel::LrSchedule schedule = optimizer.Schedule();
//
// Local.
#ifndef PLAIT_TOOLS_TRAINING_OPTIMIZER_SETTINGS_H_
#define PLAIT_TOOLS_TRAINING_OPTIMIZER_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/device_mesh.h"
#include "parallel/optim/lr_schedule.h"
#include "parallel/optim/sharded_optimizer.h"
#include "tools/training/settings_table.h"

namespace plait::training {

struct OptimizerSettings {
  double learning_rate = 1e-3, min_lr = 0;
  std::int64_t warmup_iters = 0, lr_decay_iters = 0;
  std::string lr_schedule = "cosine";
  double lr_decay_fraction = 0.1;
  bool decay_lr = true;
  std::string optimizer = "adamw";
  double muon_momentum = 0.95;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.999, grad_clip = 1;
  // Name of the flag that sets `learning_rate`, with "_" for "-".
  std::string learning_rate_flag = "learning_rate";

  // Adds the flags to `table`, as the group "Optimizer".
  void Bind(SettingsTable& table);
  // Switches the schedule on if a flag of it was given, and --decay-lr was not.
  absl::Status ChooseDefaults(SettingsTable& table);
  // INVALID_ARGUMENT for a given flag of an optimizer or schedule that is not used (Settings::CheckGiven).
  absl::Status CheckGiven(const SettingsTable& table) const;
  // INVALID_ARGUMENT, naming the flag, for a value out of range, or a flag of a decay without an end.
  absl::Status Check() const;
  // INVALID_ARGUMENT if the optimizer does not support the mesh or --offload: Muon needs whole matrices (no tp) and
  // its state in memory.
  absl::Status CheckPlaces(const std::vector<comm::MeshAxis>& axes, const std::string& offload) const;
  bool is_muon() const { return optimizer == "muon"; }
  // Requires Check(). cosine, linear: warm-up, then decay to min_lr at step lr_decay_iters. wsd (warm-up, stable,
  // decay): constant after warm-up, then a 1 - sqrt decay over the last lr_decay_fraction of lr_decay_iters. Constant
  // after warm-up if lr_decay_iters is 0; constant from the start if decay_lr is false.
  parallel::LrSchedule Schedule() const;
  parallel::ShardedOptimizerOptions Options() const;

  std::string given_of_decay = {};  // the flag of a decay that was given
  bool decay_iters_given = false;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_OPTIMIZER_SETTINGS_H_
