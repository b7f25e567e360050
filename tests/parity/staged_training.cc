#include "tests/parity/staged_training.h"

#include <vector>

#include "parallel/pipeline/stage_split.h"

namespace plait::parity {

StagedTraining::StagedTraining(models::BlockModel& model, const comm::DeviceMesh& mesh,
                               const StagedOptions& options) {
  const comm::Communicator& pp = mesh.axis("pp");
  const parallel::Schedule schedule =
      *parallel::MakeSchedule(options.schedule, {.ranks = pp.size(), .micro_batches = options.micro_batches});
  const auto stages = *parallel::SplitBlocks(parallel::CostsByParameters(model.units()), schedule.stages());
  std::vector<models::ParameterUnit> units;
  for (auto& [unit, index] :
       parallel::UnitsOfRank(model.units(), stages, schedule.rank_of_stage, pp.rank())) {
    for (models::ParameterSpec& p : unit.parameters) {
      if (!options.sums_tied_gradients) p.placement.partial.clear();
    }
    units.push_back(unit);
  }
  dp = *parallel::DataParallel::Create(*parallel::WithEnds(mesh, schedule.rank_of_stage), units,
                                       options.engine);
  optimizer = std::make_unique<parallel::ShardedOptimizer>(*dp, options.optimizer);
  pipeline = *parallel::PipelineExecutor::Create(*dp, model, pp, schedule, stages, options.pipeline);
}

}  // namespace plait::parity
