// Predicts what each rank sends in a training step, by axis and collective: the numbers that comm::Stats would count.
//
//   const StepPlan plan = *StepPlan::Make(model, run);
//   for (const AxisTraffic& t : TrafficOf(plan, {.pp = 0, .tp = 0})) ...   // t.axis, t.operation, t.wire_bytes
//
// With b samples per micro-batch and data rank, T tokens of a sequence per rank along cp, d the width, rows = b T,
// c bytes per element of the compute type, e of the masters' type, a step of M micro-batches consists of:
//
//   tp         per block and micro-batch: 2 all-reduces of rows x d elements forward and 2 backward; with sequence
//              parallelism 2 all-gathers and 2 reduce-scatters each way (zero-bubble schedules: 4 all-gathers back).
//              Embedding: one reduction forward (and its transpose backward with sequence parallelism); head: the
//              transpose of that; loss: all-reduces of rows and of 2 x rows elements. Images (PlannedModel) have only
//              the all-gathers of sequence parallelism at both ends. Per step: one all-reduce of all partial gradients
//   cp         per block and micro-batch, ring: N - 1 messages of keys and values forward; N - 1 of them and N - 1 of
//              their gradients (float32) backward; Ulysses: 4 all-to-alls each way. Images: pooled tokens are
//              all-reduced each way. Ranks along cp are also ranks of dp_shard, or of dp_replicate under ddp
//              (parallel/context/data_mesh.h)
//   pp         per micro-batch and boundary between ranks: hidden states forward, their gradients backward
//   dp_shard   per flat buffer of P elements: reduce-scatter of e P bytes, all-gather of c P bytes (fsdp: CountGathers
//              times)
//   dp_replicate  per flat buffer: all-reduce of the shard, e P / N bytes
//   pp_ends    one all-reduce of the gradients of all parameters that both ends of a pipeline use
//
// Not included: the global norm (8 bytes), losses, and the exchange of shapes in the first step. Local.
#ifndef PLAIT_PARALLEL_PLAN_TRAFFIC_H_
#define PLAIT_PARALLEL_PLAN_TRAFFIC_H_

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/buffer.h"
#include "comm/operation.h"
#include "parallel/context/context_axis.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/stage_split.h"
#include "parallel/plan/planned_model.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

// The settings of a training run that programs have as flags.
struct PlannedRun {
  MeshSizes mesh = {};
  Strategy strategy = Strategy::kDdp;
  bool sequence_parallel = false;
  context_parallel::ContextKind context = context_parallel::ContextKind::kRing;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  int chunks = 0;
  int micro_batches = 1;
  std::int64_t micro_batch = 1;  // samples per data rank; the largest, if they get unequal parts
  // Samples of a step over all data ranks, if they get unequal parts; 0: micro_batch on each, in each micro-batch.
  std::int64_t step_samples = 0;
  at::ScalarType master_type = at::kFloat, compute_type = at::kFloat;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool reshard_after_forward = true, prefetch = true, reduce_each_micro_batch = false;
  std::int64_t part_bytes = std::int64_t{1} << 20;

  // Ranks of the shard and of the replicate axis; cp is part of one of them.
  int shard_ranks() const { return mesh.dp_shard * (strategy == Strategy::kDdp ? 1 : mesh.cp); }
  int replicate_ranks() const { return mesh.dp_replicate * (strategy == Strategy::kDdp ? mesh.cp : 1); }
};

// A rank's coordinates; dp_shard is in [0, shard_ranks()).
struct RankPlace {
  int pp = 0, dp_shard = 0, tp = 0;
};

// A run with its schedule and stages.
struct StepPlan {
  PlannedModel model;
  PlannedRun run = {};
  Schedule schedule = {};
  std::vector<StageRange> stages = {};

  // Errors of CheckSplit, MakeSchedule and SplitBlocks; INVALID_ARGUMENT if Ulysses cannot split the heads.
  static absl::StatusOr<StepPlan> Make(const PlannedModel& model, const PlannedRun& run);
  // Rows of the residual stream in a micro-batch on a rank, before sequence parallelism.
  std::int64_t rows() const { return run.micro_batch * LocalTokens(model, run.mesh); }
};

enum class Axis : std::uint8_t { kPp, kReplicate, kShard, kCp, kTp, kEnds };
const char* Name(Axis axis);
int SizeOf(const PlannedRun& run, Axis axis);

// `count` equal calls.
struct Call {
  Axis axis = Axis::kTp;
  comm::Operation operation = comm::Operation::kAllReduce;
  std::int64_t elements = 0;  // of the payload (comm::Payload)
  comm::DataType type = comm::DataType::kFloat32;
  std::int64_t count = 1;
};
// Bytes that the rank sends in all `count` calls (comm::WireBytes).
std::int64_t WireBytes(const Call& call, const PlannedRun& run);

// The calls of one micro-batch.
struct PassCalls {
  std::vector<Call> forward, backward;
};
PassCalls BlockCalls(const StepPlan& plan);
PassCalls PrologueCalls(const StepPlan& plan);
PassCalls EpilogueCalls(const StepPlan& plan);
// One message from a stage to the next or, in backward, to the previous one; count is 1.
Call MessageBetweenStages(const StepPlan& plan);

// The units of a rank of pp: its part of the root units, and `blocks` equal blocks.
struct RankUnits {
  std::vector<models::ParameterUnit> roots = {};
  models::ParameterUnit block = {};
  int blocks = 0;
};
RankUnits UnitsOf(const StepPlan& plan, const RankPlace& place);

// The calls of a step for parameters and gradients of a rank of pp.
struct StateCalls {
  std::vector<Call> root_gathers, block_gathers;  // of parameters; calls of equal blocks are one
  std::vector<Call> reductions;                   // along dp_shard and dp_replicate
  std::vector<Call> partial_sums;                 // along tp and pp_ends, after the last backward
  std::int64_t parameters = 0;                    // elements of the flat buffers, padding included
};
StateCalls StateCallsOf(const StepPlan& plan, const RankPlace& place);

struct AxisTraffic {
  std::string axis;
  comm::Operation operation = comm::Operation::kAllReduce;
  std::int64_t calls = 0, wire_bytes = 0;
};
// Totals of a step. Axes of one rank and operations without calls are left out.
std::vector<AxisTraffic> TrafficOf(const StepPlan& plan, const RankPlace& place);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_TRAFFIC_H_
