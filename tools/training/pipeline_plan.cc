#include "tools/training/pipeline_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "mgrit/grid.h"
#include "parallel/pipeline/simulator.h"

namespace plait::training {
namespace {

std::optional<BlockRange> OwnLayers(const Settings& settings, const comm::DeviceMesh& mesh,
                                    const models::BlockModel& model) {
  if (!settings.blocks_are_steps() || !mesh.Has("lp")) return std::nullopt;
  const comm::Communicator& lp = mesh.axis("lp");
  if (!settings.lp.Solves(lp.size())) return std::nullopt;
  const auto blocks = static_cast<std::int64_t>(model.blocks().size());
  const auto partition = mgrit::Partition::OfWholeIntervals(blocks, lp.size(), settings.lp.Options().forward);
  const int position = partition.PositionOf(lp.rank());
  const std::int64_t first = partition.first_step(position), last = partition.last_step(position);
  const auto owner = [&](std::int64_t step) {
    const bool exists = first < last && step >= 0 && step < blocks;
    return exists ? partition.RankAt(partition.OwnerPosition(step)) : -1;
  };
  return BlockRange{.first = static_cast<int>(first),
                    .count = static_cast<int>(last - first),
                    .rank_before = owner(first - 1),
                    .rank_behind = owner(last)};
}

}  // namespace

std::vector<parallel::RankUnit> PipelinePlan::Units(const std::vector<models::ParameterUnit>& all) const {
  std::vector<parallel::RankUnit> units =
      parallel::UnitsOfRank(all, stages, schedule.rank_of_stage, pp.rank());
  if (!layers.has_value()) return units;
  std::erase_if(units, [this](const parallel::RankUnit& unit) {
    const int block = unit.unit.block;
    return block != models::ParameterUnit::kRoot &&
           (block < layers->first || block >= layers->first + layers->count);
  });
  for (parallel::RankUnit& unit : units) {
    if (unit.unit.block != models::ParameterUnit::kRoot) unit.unit.block -= layers->first;
  }
  return units;
}

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
  return PipelinePlan{.schedule = std::move(schedule),
                      .stages = *std::move(stages),
                      .pp = pp,
                      .layers = OwnLayers(settings, mesh, model)};
}

absl::StatusOr<std::string> TextOf(const PipelinePlan& plan) {
  const parallel::Schedule& schedule = plan.schedule;
  PLAIT_ASSIGN_OR_RETURN(const parallel::Simulation simulation, parallel::Simulate(schedule));
  return absl::StrFormat("pipeline: %s, %d ranks with %d stage%s each, %d micro-batches, bubble %.0f %%; %s",
                         schedule.name, schedule.ranks, schedule.chunks, schedule.chunks == 1 ? "" : "s",
                         schedule.micro_batches, 100 * simulation.bubble, parallel::ToText(plan.stages));
}

}  // namespace plait::training
