// The pipeline of a run: the assignment of blocks to ranks of pp, and the schedule of a step. If pp is absent or has
// size 1 there is one stage, and the schedule is plain gradient accumulation. If blocks are the steps of a
// layer-parallel solver, the blocks of that stage are distributed over lp.
#ifndef PLAIT_TOOLS_TRAINING_PIPELINE_PLAN_H_
#define PLAIT_TOOLS_TRAINING_PIPELINE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "models/block_model.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/stage_split.h"
#include "tools/training/settings.h"

namespace plait::training {

// The consecutive blocks of this rank of lp.
struct BlockRange {
  int first = 0, count = 0;
  // Ranks of lp that own the neighbouring blocks; -1: no such block, or this rank has none.
  int rank_before = -1, rank_behind = -1;
};

struct PipelinePlan {
  parallel::Schedule schedule;
  std::vector<parallel::StageRange> stages;
  comm::Communicator pp;
  // This rank's blocks, if a layer-parallel solver distributes them.
  std::optional<BlockRange> layers = {};

  // The parameter units of this rank; its blocks are numbered from 0.
  std::vector<parallel::RankUnit> Units(const std::vector<models::ParameterUnit>& all) const;
};

// Local. Requires checked settings. INVALID_ARGUMENT if there are more stages than blocks; errors of
// Settings::PipelineSchedule.
absl::StatusOr<PipelinePlan> PlanPipeline(const Settings& settings, const comm::DeviceMesh& mesh,
                                          const models::BlockModel& model);

// "pipeline: 1f1b, 4 ranks with 1 stage each, 8 micro-batches, bubble 27 %; blocks 0-2 | 3-5 | 6-8 | 9-11".
absl::StatusOr<std::string> TextOf(const PipelinePlan& plan);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_PIPELINE_PLAN_H_
