// Says what a run will need and which mesh to choose: tools/plan_parts/README.md.
#include <cstdio>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "parallel/plan/mesh_search.h"
#include "tools/plan_parts/report.h"
#include "tools/plan_parts/settings.h"

namespace plait::planning {
namespace {

constexpr int kUsageError = 2;

absl::StatusOr<std::vector<parallel::Estimate>> Estimates(const PlanSettings& settings,
                                                          const parallel::PlannedModel& model,
                                                          const parallel::Cluster& cluster) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::PlannedRun run, RunOf(settings, cluster));
  if (settings.trainer->mesh.empty()) {
    PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOf(settings, cluster));
    return Search(model, run, {.samples = run.micro_batch, .ranks = ranks}, cluster);
  }
  PLAIT_ASSIGN_OR_RETURN(const parallel::Estimate estimate, EstimateOf(model, run, cluster));
  return std::vector<parallel::Estimate>{estimate};
}

absl::Status Plan(const PlanSettings& settings) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::Cluster cluster, ClusterOf(settings));
  PLAIT_ASSIGN_OR_RETURN(const parallel::PlannedModel model, ModelOf(settings));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<parallel::Estimate> estimates, Estimates(settings, model, cluster));
  std::printf("%s\n%s", HeadingText(model, cluster).c_str(),
              TableText(estimates, static_cast<std::size_t>(settings.top), model, cluster).c_str());
  if (settings.explain) std::printf("%s", ExplanationText(estimates[0], model).c_str());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const PlanSettings settings = ParseOrExit(argc, argv, /*rank=*/0);
  const absl::Status planned = Plan(settings);
  if (planned.ok()) return 0;
  std::fprintf(stderr, "plan: %s\n", std::string(planned.message()).c_str());
  return kUsageError;
}

}  // namespace
}  // namespace plait::planning

int main(int argc, char** argv) { return plait::planning::Main(argc, argv); }
