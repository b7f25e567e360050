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
// Hidden states are sent to the next stage's rank and their gradients back, each on its own communicator; sends and
// receives do not block, and receives are posted before the action that needs them. For any schedule, gradients are
// those of one rank with all blocks: of the sum of all losses times loss_factor, usually 1 / count of the whole batch.
//
// Shapes are sent with the first micro-batch of each input shape, and must be the same for later ones. All ranks of
// the axis pass the same micro-batches: the first stage reads inputs, the last one targets, the others only shapes.
//
// With one rank and one chunk, 1f1b is gradient accumulation. Collective over pp and the engine's axes.
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
  double loss_factor = 1;  // gradients are those of the sum over micro-batches of loss times loss_factor
};
// Called once for every micro-batch of a step, in order.
using NextMicroBatch = std::function<PipelineMicroBatch(int micro_batch)>;

// Times of std::chrono::steady_clock.
struct ActionTime {
  Action action;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t waited_ns = 0;  // part of it: waiting for messages
};

struct PipelineStep {
  std::vector<models::LossSum> losses;  // by micro-batch, detached; on the rank of the last stage, else empty
  std::vector<ActionTime> timeline;     // in order
  int most_in_flight = 0;               // largest number of (stage, micro-batch) pairs between F and B or W
  // Time in NextMicroBatch outside of the actions' times: receives, which other stages than the first post before an
  // action, need the input's shape.
  std::int64_t batch_ns = 0;
};

// Runs all blocks of the model together, by a layer-parallel solver; this rank's engine has `count` of them, from
// `first` on. With one stage only, and without schedules that split the backward.
struct BlockSolve {
  std::size_t first = 0, count = 0;
  // Returns the state after the last block, on every rank.
  std::function<models::BlockState(const models::BlockState& input, const models::BlockContext& context)>
      forward = {};
};

struct PipelineOptions {
  // Computes block `block` of the model, with its parameters unsharded. Empty: Block::Forward.
  models::BlockRunner forward = {};
  // Used instead of `forward` if solve.forward is not empty.
  BlockSolve solve = {};
  // As DataParallel::MicroBatch.
  bool reduce_every_micro_batch = false;
};

class PipelineExecutor {
 public:
  // Collective. `engine` must have the units of UnitsOfRank for this rank of pp; engine and model must outlive the
  // executor. Errors are the same on all ranks. INVALID_ARGUMENT or FAILED_PRECONDITION: those of Simulate.
  // INVALID_ARGUMENT: the schedule does not match the ranks of pp or the number of stages; a stage is empty, or stages
  // do not cover every block once and in order; ranks pass different schedules or stages; or the engine is reproducible
  // and the schedule splits the backward or puts the first and the last stage on one rank. The program ends if
  // options.solve is used with several stages.
  static absl::StatusOr<std::unique_ptr<PipelineExecutor>> Create(
      DataParallel& engine, models::BlockModel& model, const comm::Communicator& pp, Schedule schedule,
      std::vector<StageRange> stages, PipelineOptions options = {});

  // Collective. Forward and backward of all micro-batches of a step; an optimizer step follows. If `final` is false, no
  // call is final (models::BlockContext): for passes that are repeated with the same micro-batches.
  PipelineStep Run(const NextMicroBatch& next, bool final = true);
  // Collective. Forward only, without autograd. The loss on the rank of the last stage, else a zero sum and count.
  models::LossSum Loss(const models::Batch& batch);
  // Collective. The same for the model's output; undefined on other ranks than that of the last stage.
  at::Tensor Output(const models::Batch& batch);

  const Schedule& schedule() const { return schedule_; }
  const std::vector<StageRange>& stages() const { return stages_; }

 private:
  // State of a stage and micro-batch, from F to B or W.
  struct Flight {
    std::vector<at::Tensor> inputs, outputs;
    // If the stage is the whole model and sums are reproducible: the outputs of the prologue, where the graph is cut.
    std::vector<at::Tensor> embedded;
    SplitBackward split;
    std::shared_ptr<const void> hold;  // from I to W
  };

  PipelineExecutor(DataParallel& engine, models::BlockModel& model, const comm::Communicator& pp,
                   Schedule schedule, std::vector<StageRange> stages, PipelineOptions options);

  bool IsMine(int stage) const { return schedule_.rank_of_stage[stage] == rank_; }
  const PipelineMicroBatch& BatchOf(int micro_batch);
  bool Post(const Action& action);  // as of StageMessages
  void BeginStage(int stage, std::ptrdiff_t following);
  models::BlockState RunBlocks(const StageRange& range, models::BlockState state, const models::Batch& batch);
  std::ptrdiff_t BlockBehind(std::size_t action) const;
  void Do(const Action& action, bool last, PipelineStep& step);
  void Forward(const Action& action, PipelineStep& step);
  void Backward(const Action& action, bool last);
  bool CutsPrologue(const StageRange& range) const;
  // Applied by the last stage to its hidden state.
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
  bool final_ = true;         // of the step
  int asked_ = 0;             // micro-batches requested in this step so far
  std::int64_t next_ns_ = 0;  // time in next_, of all steps
  std::map<int, PipelineMicroBatch> batches_;
  std::map<std::pair<int, int>, Flight> flights_;  // by stage and micro-batch
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_EXECUTOR_H_
