// The flags of the layer-parallel solver (mgrit/layer_parallel) and what they stand for.
#ifndef PLAIT_TOOLS_TRAINING_LAYER_PARALLEL_SETTINGS_H_
#define PLAIT_TOOLS_TRAINING_LAYER_PARALLEL_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "tools/training/settings_table.h"

namespace plait::training {

struct LayerParallelSettings {
  bool force = false;
  // Chosen from the curve of gradient error against cost in docs/benchmarks.md.
  int levels = 2;
  std::vector<int> cfactor = {4};
  int iterations = 1;
  int forward_iterations = 2;
  bool use_downcycle = false;
  int fmg_iterations = 0;
  int forward_finest_sweeps = 0, forward_sweeps = 1, backward_sweeps = 1;
  // Of the gradient's bias (solver_control.h); 0: iterations stay as they are.
  double bias_limit = 0;
  int bias_every = 20;
  std::string bias_reference = "serial";
  bool may_be_serial = false;
  bool chooses = false;  // --lp-auto

  // A group of --lp-... flags.
  void Bind(SettingsTable& table);
  // Of a program whose networks have `steps` steps, which --`flag` says. Errors begin with the flag.
  absl::Status Check(std::int64_t steps, const std::string& flag) const;

  // Whether steps are spread over the ranks of lp; else a rank takes them in turn.
  bool Solves(int lp_ranks) const { return lp_ranks > 1 || force; }
  mgrit::LayerParallelOptions Options() const;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_LAYER_PARALLEL_SETTINGS_H_
