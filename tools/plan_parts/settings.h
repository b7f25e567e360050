// The command line of plan: a model with the flags of its trainer, and plan's own.
#ifndef PLAIT_TOOLS_PLAN_PARTS_SETTINGS_H_
#define PLAIT_TOOLS_PLAN_PARTS_SETTINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/plan/cluster.h"
#include "parallel/plan/planned_model.h"
#include "parallel/plan/traffic.h"
#include "tools/plan_parts/calibration.h"
#include "tools/training/dry_run.h"
#include "tools/training/settings.h"

namespace plait::planning {

struct PlanSettings {
  std::string model = "";  // "gpt", "llama", "vit"
  std::string cluster = "", calibrate = "";
  std::int64_t samples_per_step = 0;
  int top = 10;
  bool explain = false, advise = true;
  std::shared_ptr<training::Settings> trainer = {};
};

// Exits with help or with one line about a wrong flag, as base::ParseFlagsOrExit, where `rank` is 0 it speaks.
PlanSettings ParseOrExit(int argc, char** argv, int rank);

// Of the flags. InvalidArgument, one line that begins with the flag.
absl::StatusOr<parallel::PlannedModel> ModelOf(const PlanSettings& settings);
// On the trainer's --mesh; without one, of a search: one rank and the whole step as one micro-batch.
absl::StatusOr<parallel::PlannedRun> RunOf(const PlanSettings& settings, const parallel::Cluster& cluster);
// Ranks to plan for: --nproc, else the mesh's, else the cluster's.
absl::StatusOr<int> RanksOf(const PlanSettings& settings, const parallel::Cluster& cluster);
// A step of the trainer's --mesh on the meta device. InvalidArgument, one line that begins with the flag.
absl::StatusOr<training::DryRunResult> DryRunOf(const PlanSettings& settings,
                                                const parallel::Cluster& cluster);
// What --calibrate measures with: --batch-size samples of the model on each rank.
absl::StatusOr<CalibrationModel> CalibrationModelOf(const PlanSettings& settings);
// What the flags name, with --nproc: on one node more ranks than it has share its processors.
absl::StatusOr<parallel::Cluster> ClusterOf(const PlanSettings& settings);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_SETTINGS_H_
