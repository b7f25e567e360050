// The pipeline of a run: which rank of pp has which blocks, and does what in a step. Without an axis pp, or with one
// rank on it: one stage, whose schedule is that of gradient accumulation. Where blocks are the steps of a layer-parallel
// solver, ranks of lp have parts of that stage.
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

// Consecutive blocks of this rank of lp.
struct BlockRange {
  int first = 0, count = 0;
  // Ranks of lp that have the blocks next to them; -1: none, or there are no own ones.
  int rank_before = -1, rank_behind = -1;
};

struct PipelinePlan {
  parallel::Schedule schedule;
  std::vector<parallel::StageRange> stages;
  comm::Communicator pp;
  // This rank's of a layer-parallel model.
  std::optional<BlockRange> layers = {};

  // This rank's, its blocks numbered from 0.
  std::vector<parallel::RankUnit> Units(const std::vector<models::ParameterUnit>& all) const;
};

// Local. Of checked settings. InvalidArgument where there are more stages than blocks.
absl::StatusOr<PipelinePlan> PlanPipeline(const Settings& settings, const comm::DeviceMesh& mesh,
                                          const models::BlockModel& model);

// "pipeline: 1f1b, 4 ranks with 1 stage each, 8 micro-batches, bubble 27 %; blocks 0-2 | 3-5 | 6-8 | 9-11".
absl::StatusOr<std::string> TextOf(const PipelinePlan& plan);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_PIPELINE_PLAN_H_
