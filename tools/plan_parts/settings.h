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
  bool strategy_given = false;  // a search then takes only the trainer's strategy
  std::shared_ptr<training::Settings> trainer = {};
};

// Parses the command line. Exits after --help, and with code 2 and one line on rank 0 for an invalid flag.
PlanSettings ParseOrExit(int argc, char** argv, int rank);

// The model that the flags describe. INVALID_ARGUMENT for invalid sizes.
absl::StatusOr<parallel::PlannedModel> ModelOf(const PlanSettings& settings);
// Parameters of that model, with those of experts, which PlannedModel lacks. Requires valid sizes.
std::int64_t ParametersOf(const PlanSettings& settings);
// The run on the trainer's --mesh. Without --mesh, the starting point of a search: one rank, with the whole step as one
// micro-batch. INVALID_ARGUMENT, naming the flag.
absl::StatusOr<parallel::PlannedRun> RunOf(const PlanSettings& settings, const parallel::Cluster& cluster);
// Number of ranks to plan for: --nproc, else the mesh's, else the cluster's.
absl::StatusOr<int> RanksOf(const PlanSettings& settings, const parallel::Cluster& cluster);
// Dry run of a step on the trainer's --mesh, which is required. Sets the trainer's batch size from --samples-per-step, if
// that is given.
// INVALID_ARGUMENT, naming the flag; errors of training::DryRun.
absl::StatusOr<training::DryRunResult> DryRunOf(const PlanSettings& settings,
                                                const parallel::Cluster& cluster);
// The model that --calibrate measures, with --batch-size samples per rank.
absl::StatusOr<CalibrationModel> CalibrationModelOf(const PlanSettings& settings);
// The cluster of the file --cluster. On a single node, --nproc may exceed its ranks; they then share its processors,
// memory and room for offloading, as the ranks of a run share their host's. Fewer ranks keep the memory of a rank.
// INVALID_ARGUMENT if --nproc exceeds the ranks of several nodes.
absl::StatusOr<parallel::Cluster> ClusterOf(const PlanSettings& settings);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_SETTINGS_H_
