// Predicts memory, traffic and time of a run, and suggests a mesh: tools/plan_parts/README.md.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/keep_freed_memory.h"
#include "base/path.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/session_main.h"
#include "data/hdf5/atomic_file.h"
#include "parallel/plan/advice.h"
#include "parallel/plan/mesh_search.h"
#include "tools/plan_parts/calibration.h"
#include "tools/plan_parts/report.h"
#include "tools/plan_parts/settings.h"
#include "tools/training/mesh.h"

namespace plait::planning {
namespace {

constexpr int kUsageError = 2;

absl::Status PlanMesh(const PlanSettings& settings, const parallel::PlannedModel& model,
                      const parallel::Cluster& cluster) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::PlannedRun run, RunOf(settings, cluster));
  PLAIT_ASSIGN_OR_RETURN(const parallel::Estimate estimate, EstimateOf(model, run, cluster));
  std::printf("%s", TableText({estimate}, 1, model, cluster).c_str());
  if (settings.explain) std::printf("%s", ExplanationText(estimate, model).c_str());
  return absl::OkStatus();
}

absl::Status DryRun(const PlanSettings& settings, const parallel::Cluster& cluster) {
  PLAIT_ASSIGN_OR_RETURN(const training::DryRunResult result, DryRunOf(settings, cluster));
  std::printf("%s", DryRunText(result).c_str());
  return CheckFits(result, {.bytes = static_cast<std::int64_t>(cluster.memory_bytes),
                            .limited_by = "the cluster's memory per rank"});
}

absl::Status PlanMeshes(const PlanSettings& settings, const parallel::PlannedModel& model,
                        const parallel::Cluster& cluster) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::PlannedRun run, RunOf(settings, cluster));
  PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOf(settings, cluster));
  parallel::SearchOptions options = {.samples = run.micro_batch, .ranks = ranks};
  if (settings.strategy_given) options.strategies = {run.strategy};
  PLAIT_ASSIGN_OR_RETURN(const std::vector<parallel::Estimate> ranked, Search(model, run, options, cluster));
  std::printf("%s", TableText(ranked, static_cast<std::size_t>(settings.top), model, cluster).c_str());
  if (settings.explain) std::printf("%s", ExplanationText(ranked[0], model).c_str());
  if (!settings.advise) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const parallel::Advice advice, Advise(model, run, options, cluster, ranked));
  std::printf("%s", AdviceText(advice).c_str());
  return absl::OkStatus();
}

absl::Status Plan(const PlanSettings& settings) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::Cluster cluster, ClusterOf(settings));
  PLAIT_ASSIGN_OR_RETURN(const parallel::PlannedModel model, ModelOf(settings));
  std::printf("%s\n", HeadingText(model, ParametersOf(settings), cluster).c_str());
  if (settings.trainer->dry_run) return DryRun(settings, cluster);
  return settings.trainer->mesh.empty() ? PlanMeshes(settings, model, cluster)
                                        : PlanMesh(settings, model, cluster);
}

// Collective.
absl::Status WriteCluster(const PlanSettings& settings, const comm::Communicator& world) {
  at::set_num_threads(settings.trainer->threads);
  const std::string path = base::FromUser(settings.calibrate);
  const absl::Status writable = world.rank() == 0 ? base::ProbeWritableFile(path) : absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(world.Agree(base::Prefixed(writable, "--calibrate")));
  PLAIT_ASSIGN_OR_RETURN(const CalibrationModel model, CalibrationModelOf(settings));
  PLAIT_ASSIGN_OR_RETURN(const parallel::Cluster cluster, Calibrate(world, model));
  absl::Status written;
  if (world.rank() == 0) {
    const std::string text = ClusterText(
        cluster, absl::StrCat("Measured by plan --calibrate with ", model.samples, " samples of ",
                              model.planned.name, ", width ", model.planned.width,
                              ", on the host's processors, on each of ", world.size(), " ranks."));
    written = base::Prefixed(data::WriteWholeFile(path, text), "--calibrate");
    std::printf("%s", text.c_str());
  }
  return world.Agree(written);
}

int Main(int argc, char** argv) {
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  const PlanSettings settings = ParseOrExit(argc, argv, rank);
  const auto fail = [rank](const absl::Status& status) {
    if (rank == 0) std::fprintf(stderr, "plan: %s\n", std::string(status.message()).c_str());
    return kUsageError;
  };
  if (settings.calibrate.empty()) {
    const absl::Status planned = rank == 0 ? Plan(settings) : absl::OkStatus();
    return planned.ok() ? 0 : fail(planned);
  }
  const absl::StatusOr<int> ranks = training::RanksOfRun(settings.trainer->nproc, settings.trainer->mesh,
                                                         launcher, base::UsableProcessors());
  if (!ranks.ok()) return fail(ranks.status());
  if (!launcher.starts_mpi() && *ranks > 1) return comm::RunOnRanks(*ranks, argv);
  base::KeepFreedMemory();
  return comm::RunMain(argc, argv, {},
                       [&](comm::Session& session) { return WriteCluster(settings, session.world()); });
}

}  // namespace
}  // namespace plait::planning

int main(int argc, char** argv) { return plait::planning::Main(argc, argv); }
