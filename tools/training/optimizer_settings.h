// Flags of AdamW or Muon and of the learning rate by step, alike in the programs for text and for images.
//
//   OptimizerSettings optimizer = {.learning_rate = 3e-4};
//   optimizer.Bind(table, "learning_rate");
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
  // Of --learning-rate, which some programs call otherwise; with "_".
  std::string learning_rate_flag = "learning_rate";

  // In a group "Optimizer".
  void Bind(SettingsTable& table);
  // InvalidArgument for numbers outside their bounds, with the flag's name.
  absl::Status Check() const;
  // InvalidArgument for meshes and places of state that the optimizer does not work on.
  absl::Status CheckPlaces(const std::vector<comm::MeshAxis>& axes, const std::string& offload) const;
  bool is_muon() const { return optimizer == "muon"; }
  // Behind Check. cosine, linear: warm-up, then decay until lr_decay_iters. wsd: constant after warm-up, decay
  // (1 - sqrt) in the last lr_decay_fraction of lr_decay_iters. Without lr_decay_iters constant after warm-up,
  // without decay_lr constant.
  parallel::LrSchedule Schedule() const;
  parallel::ShardedOptimizerOptions Options() const;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_OPTIMIZER_SETTINGS_H_
