// A model split into stages along axis "pp" of a mesh, with the engine, optimizer and pipeline of this rank's stages.
//
//   StagedTraining staged(*model, mesh, {.schedule = ScheduleKind::kZbH1, .micro_batches = 5});
//   parallel::PipelineStep done = staged.pipeline->Run(next_micro_batch);
//   staged.optimizer->Step({.clip_norm = 1});
#ifndef PLAIT_TESTS_PARITY_STAGED_TRAINING_H_
#define PLAIT_TESTS_PARITY_STAGED_TRAINING_H_

#include <memory>

#include "comm/device_mesh.h"
#include "models/block_model.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/pipeline/executor.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parity {

struct StagedOptions {
  parallel::ScheduleKind schedule = parallel::ScheduleKind::k1F1B;
  int micro_batches = 1;
  parallel::DataParallelOptions engine = {};
  parallel::ShardedOptimizerOptions optimizer = {};
  parallel::PipelineOptions pipeline = {};
  bool sums_tied_gradients = true;  // false: a fault
};

struct StagedTraining {
  // Collective over the mesh. Blocks are split by their numbers of parameters. `model` outlives this.
  StagedTraining(models::BlockModel& model, const comm::DeviceMesh& mesh, const StagedOptions& options);

  std::unique_ptr<parallel::DataParallel> dp;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer;
  std::unique_ptr<parallel::PipelineExecutor> pipeline;
};

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_STAGED_TRAINING_H_
