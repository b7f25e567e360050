#include "tools/training/pipeline_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "parallel/pipeline/simulator.h"

namespace plait::training {

absl::StatusOr<PipelinePlan> PlanPipeline(const Settings& settings, const comm::DeviceMesh& mesh,
                                          const models::BlockModel& model) {
  const comm::Communicator pp = mesh.Has("pp") ? mesh.axis("pp") : comm::Communicator::Self();
  int data_ranks = 1;
  for (const char* axis : {"dp_replicate", "dp_shard"})
    data_ranks *= mesh.Has(axis) ? mesh.axis(axis).size() : 1;
  PLAIT_ASSIGN_OR_RETURN(parallel::Schedule schedule, settings.PipelineSchedule(pp.size(), data_ranks));
  absl::StatusOr<std::vector<parallel::StageRange>> stages =
      parallel::SplitBlocks(parallel::CostsByParameters(model.units()), schedule.stages());
  PLAIT_RETURN_IF_ERROR(base::Prefixed(stages.status(), absl::StrCat("--mesh=", settings.mesh)));
  return PipelinePlan{.schedule = std::move(schedule), .stages = *std::move(stages), .pp = pp};
}

absl::StatusOr<std::string> TextOf(const PipelinePlan& plan) {
  const parallel::Schedule& schedule = plan.schedule;
  PLAIT_ASSIGN_OR_RETURN(const parallel::Simulation simulation, parallel::Simulate(schedule));
  return absl::StrFormat("pipeline: %s, %d ranks with %d stage%s each, %d micro-batches, bubble %.0f %%; %s",
                         schedule.name, schedule.ranks, schedule.chunks, schedule.chunks == 1 ? "" : "s",
                         schedule.micro_batches, 100 * simulation.bubble, parallel::ToText(plan.stages));
}

}  // namespace plait::training
