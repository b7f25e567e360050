// Runs a pipeline schedule: this rank's stages of a model, with DataParallel as the engine of each stage.
//
//   const Schedule schedule = *MakeSchedule(ScheduleKind::k1F1B, {.ranks = pp.size(), .micro_batches = 8});
//   const std::vector<StageRange> stages = *SplitBlocks(CostsByParameters(model.units()), schedule.stages());
//   ... DataParallel::Create(*WithEnds(mesh, schedule.rank_of_stage), units of UnitsOfRank(...))
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<PipelineExecutor> pipeline,
//                          PipelineExecutor::Create(dp, model, pp, schedule, stages));
//   const PipelineStep step = pipeline->Run([&](int k) { return PipelineMicroBatch{batches[k], 1.0 / tokens}; });
//   optimizer.Step({.clip_norm = 1});
//
// Hidden states go to the next stage's rank, their gradients back, on a communicator of their own each; sends and
// receives do not block, and receives are posted before the action that needs them. The result of a step is that of
// one rank with all blocks: losses are summed and divided by the count of the whole batch (loss_factor), whatever
// the schedule is.
//
// A stage learns the shape of what it receives with the first micro-batch of each input shape: the next stage's
// rank is told once, and expects the same from then on. All ranks of the axis pass the same micro-batches: the
// first stage reads inputs, the last one targets, the others shapes.
//
// With one rank and one chunk, 1f1b is gradient accumulation. Collective along pp and along the engine's axes.
#ifndef PLAIT_PARALLEL_PIPELINE_EXECUTOR_H_
#define PLAIT_PARALLEL_PIPELINE_EXECUTOR_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "models/block_model.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/split_backward.h"
#include "parallel/pipeline/stage_messages.h"
#include "parallel/pipeline/stage_split.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

struct PipelineMicroBatch {
  models::Batch batch;
  double loss_factor = 1;  // gradients are those of the sum of all losses times their factors
};
// Called once for every micro-batch of a step, in order.
using NextMicroBatch = std::function<PipelineMicroBatch(int micro_batch)>;

// On the steady clock.
struct ActionTime {
  Action action;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t waited_ns = 0;  // of it, for what another rank sends
};

struct PipelineStep {
  std::vector<models::LossSum> losses;  // by micro-batch, detached; on the rank of the last stage, else empty
  std::vector<ActionTime> timeline;     // in order
  int most_in_flight = 0;               // stages x micro-batches from F to B or W
};

// Blocks that run together, by a layer-parallel solver: all of the model's, of which the engine has `count` from `first`
// on. On one stage only, without backward passes in two parts.
struct BlockSolve {
  std::size_t first = 0, count = 0;
  // The state behind the last block, on every rank.
  std::function<models::BlockState(const models::BlockState& input, const models::BlockContext& context)>
      forward = {};
};

struct PipelineOptions {
  // Computes block `block` of the model, whose parameters are unsharded. Empty: Block::Forward.
  models::BlockRunner forward = {};
  // In place of it, where its forward is not empty.
  BlockSolve solve = {};
  // As DataParallel::MicroBatch.
  bool reduce_every_micro_batch = false;
};

class PipelineExecutor {
 public:
  // `engine` has the units of UnitsOfRank for pp's rank; engine and model outlive the executor.
  // InvalidArgument or FailedPrecondition, the same on all ranks, for a schedule that Simulate refuses, that is
  // not for pp's ranks, or that has not as many stages as `stages`; for stages that do not have every block once, in
  // order, or are empty; where ranks have different ones; and, with an engine that is reproducible, for backward passes
  // in two parts or both ends of the model as two stages on one rank.
  static absl::StatusOr<std::unique_ptr<PipelineExecutor>> Create(
      DataParallel& engine, models::BlockModel& model, const comm::Communicator& pp, Schedule schedule,
      std::vector<StageRange> stages, PipelineOptions options = {});

  // Forward and backward of all micro-batches of a step. Afterwards the gradients are there; an optimizer step
  // comes next. Not `final`: the micro-batches come once more, and no call is final (models::BlockContext).
  PipelineStep Run(const NextMicroBatch& next, bool final = true);
  // Forward alone, without autograd. The loss on the rank of the last stage; else a zero sum and count.
  models::LossSum Loss(const models::Batch& batch);
  // The same for the model's output: on the rank of the last stage, else undefined.
  at::Tensor Output(const models::Batch& batch);

  const Schedule& schedule() const { return schedule_; }
  const std::vector<StageRange>& stages() const { return stages_; }

 private:
  // A stage with a micro-batch, from F to B or W.
  struct Flight {
    std::vector<at::Tensor> inputs, outputs;
    // Of a stage that is the whole model, where sums are reproducible: the prologue's outputs, whose graph ends there.
    std::vector<at::Tensor> embedded;
    SplitBackward split;
    std::shared_ptr<const void> hold;  // from I to W
  };

  PipelineExecutor(DataParallel& engine, models::BlockModel& model, const comm::Communicator& pp,
                   Schedule schedule, std::vector<StageRange> stages, PipelineOptions options);

  bool IsMine(int stage) const { return schedule_.rank_of_stage[stage] == rank_; }
  const PipelineMicroBatch& BatchOf(int micro_batch);
  void Post(const Action& action);
  void BeginStage(int stage, std::ptrdiff_t following);
  models::BlockState RunBlocks(const StageRange& range, models::BlockState state, const models::Batch& batch);
  std::ptrdiff_t BlockBehind(std::size_t action) const;
  void Do(const Action& action, bool last, PipelineStep& step);
  void Forward(const Action& action, PipelineStep& step);
  void Backward(const Action& action, bool last);
  bool CutsPrologue(const StageRange& range) const;
  // What the last stage does with its hidden state.
  using End = std::function<at::Tensor(const models::BlockState& state, const models::Batch& batch)>;
  void ForwardStage(int stage, int micro_batch, const End& end, Flight& flight);
  void ForwardAlone(const models::Batch& batch, const End& end);
  std::vector<at::Tensor> GradientsOfOutputs(const Action& action, const Flight& flight);
  void SendGradients(const Action& action, std::vector<at::Tensor> gradients, const Flight& flight);

  DataParallel& engine_;
  models::BlockModel& model_;
  int rank_;  // along pp
  Schedule schedule_;
  std::vector<StageRange> stages_;
  PipelineOptions options_;
  StageMessages messages_;
  std::vector<int> local_;  // by block of the model: its number in the engine, or -1
  NextMicroBatch next_;
  bool final_ = true;  // of the step
  int asked_ = 0;      // micro-batches of this step so far
  std::map<int, PipelineMicroBatch> batches_;
  std::map<std::pair<int, int>, Flight> flights_;  // by stage and micro-batch
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_EXECUTOR_H_
