// The flags of the layer-parallel solver (mgrit/layer_parallel).
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
  // Defaults chosen from "Gradient error against cost" in docs/benchmarks.md.
  int levels = 2;
  std::vector<int> cfactor = {4};
  int iterations = 1;
  int forward_iterations = 2;
  bool use_downcycle = false;
  int fmg_iterations = 0;
  int forward_finest_sweeps = 0, forward_sweeps = 1, backward_sweeps = 1;
  // Largest relative bias of the gradient (solver_control.h); 0: the iterations are fixed.
  double bias_limit = 0;
  int bias_every = 20;
  std::string bias_reference = "serial";
  bool may_be_serial = false;
  bool chooses = false;  // --lp-auto

  // Adds the --lp-... flags to `table`, as a group of their own.
  void Bind(SettingsTable& table);
  // INVALID_ARGUMENT, naming the flag, for values out of range, or for a grid that cannot coarsen `steps` time steps.
  // `flag` is the flag, without "--", that determines `steps`.
  absl::Status Check(std::int64_t steps, const std::string& flag) const;

  // Whether the solver is used, with `lp_ranks` ranks along lp; otherwise a rank propagates serially.
  bool Solves(int lp_ranks) const { return lp_ranks > 1 || force; }
  mgrit::LayerParallelOptions Options() const;
  // One level, which is exact: no bias to measure and no other solver to choose.
  void PropagateSerially();
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_LAYER_PARALLEL_SETTINGS_H_
