// What each rank sends in a training step, by axis and collective: the numbers of comm::Stats, before the run.
//
//   const StepPlan plan = *StepPlan::Make(model, run);
//   for (const AxisTraffic& t : TrafficOf(plan, {.pp = 0, .tp = 0})) ...   // t.axis, t.operation, t.wire_bytes
//
// With b samples of a micro-batch on a data rank, T tokens of a sequence on a rank along cp, d the width, rows = b T,
// c bytes of a number in computation, e of a master, a step of M micro-batches calls:
//
//   tp         per block and micro-batch: forward 2 all-reduces of rows d, backward 2; with sequence parallelism
//              all-gather and reduce-scatter, 2 of each, both ways (zero-bubble schedules: 4 all-gathers backward).
//              Embedding: one reduction forward (and its transpose
//              backward with sequence parallelism); head: its transpose; loss: all-reduces of rows and of 2 rows
//              numbers. Per step, of all parameters with partial gradients: one all-reduce
//   cp         per block and micro-batch, ring: N - 1 messages of keys and values forward, N - 1 of them and N - 1 of
//              their gradients (float32) backward; Ulysses: 4 all-to-alls both ways. Ranks along cp share states: they
//              are ranks of dp_shard, or of dp_replicate under ddp, too (parallel/context/data_mesh.h)
//   pp         per micro-batch and boundary between ranks: hidden states forward, their gradients backward
//   dp_shard   per part of a unit of P numbers: reduce-scatter e P, all-gather c P (fsdp: as often as CountGathers)
//   dp_replicate  per part: all-reduce of the shard, e P / N
//   pp_ends    of all parameters that both ends of a pipeline read: one all-reduce
//
// Not listed: the global norm (8 bytes), losses, announcements of shapes in the first step. Local.
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

// A training run: what programs' flags say.
struct PlannedRun {
  MeshSizes mesh = {};
  Strategy strategy = Strategy::kDdp;
  bool sequence_parallel = false;
  context_parallel::ContextKind context = context_parallel::ContextKind::kRing;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  int chunks = 0;
  int micro_batches = 1;
  std::int64_t micro_batch = 1;  // samples on a data rank
  at::ScalarType master_type = at::kFloat, compute_type = at::kFloat;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool reshard_after_forward = true, prefetch = true, reduce_each_micro_batch = false;
  std::int64_t part_bytes = std::int64_t{1} << 20;

  // That shard and that replicate states: cp is one of them.
  int shard_ranks() const { return mesh.dp_shard * (strategy == Strategy::kDdp ? 1 : mesh.cp); }
  int replicate_ranks() const { return mesh.dp_replicate * (strategy == Strategy::kDdp ? mesh.cp : 1); }
};

// A rank's place along the axes; of dp_shard among shard_ranks().
struct RankPlace {
  int pp = 0, dp_shard = 0, tp = 0;
};

// A run with its stages.
struct StepPlan {
  PlannedModel model;
  PlannedRun run = {};
  Schedule schedule = {};
  std::vector<StageRange> stages = {};

  // Errors of CheckSplit, MakeSchedule and SplitBlocks; InvalidArgument for heads that Ulysses cannot split.
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
// Sent by the rank in all of them; comm::WireBytes.
std::int64_t WireBytes(const Call& call, const PlannedRun& run);

// Of a micro-batch.
struct PassCalls {
  std::vector<Call> forward, backward;
};
PassCalls BlockCalls(const StepPlan& plan);
PassCalls PrologueCalls(const StepPlan& plan);
PassCalls EpilogueCalls(const StepPlan& plan);
// From one stage to the next; without its count for stages of one rank.
Call MessageBetweenStages(const StepPlan& plan);

// What a rank of pp has: its part of the root units, and so many equal blocks.
struct RankUnits {
  std::vector<models::ParameterUnit> roots = {};
  models::ParameterUnit block = {};
  int blocks = 0;
};
RankUnits UnitsOf(const StepPlan& plan, const RankPlace& place);

// Of the flat buffers of a rank of pp, in a step.
struct StateCalls {
  std::vector<Call> root_gathers, block_gathers;  // of parameters; calls of equal blocks are one
  std::vector<Call> reductions;                   // along dp_shard and dp_replicate
  std::vector<Call> partial_sums;                 // along tp and pp_ends, after the last backward
  std::int64_t parameters = 0;                    // numbers in the buffers, padding included
};
StateCalls StateCallsOf(const StepPlan& plan, const RankPlace& place);

struct AxisTraffic {
  std::string axis;
  comm::Operation operation = comm::Operation::kAllReduce;
  std::int64_t calls = 0, wire_bytes = 0;
};
// Of a whole step; axes of one rank are left out, zeros too.
std::vector<AxisTraffic> TrafficOf(const StepPlan& plan, const RankPlace& place);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_TRAFFIC_H_
