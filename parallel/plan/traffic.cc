#include "parallel/plan/traffic.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/tensor_type.h"
#include "parallel/plan/gather_count.h"
#include "parallel/sharding/unit_parts.h"

namespace plait::parallel {
namespace {

using comm::DataType;
using comm::Operation;
using comm::TypeOf;
using context_parallel::ContextKind;

DataType SumType(const PlannedRun& run) {
  return run.compute_type == at::kDouble ? DataType::kFloat64 : DataType::kFloat32;
}

void Append(std::vector<Call>& calls, const std::vector<Call>& more, std::int64_t times) {
  for (Call call : more) {
    call.count *= times;
    calls.push_back(call);
  }
}

// A block has two pairs of layers, the first split by columns, the second by rows.
PassCalls TensorCalls(const StepPlan& plan) {
  const std::int64_t numbers = plan.rows() * plan.model.width, ranks = plan.run.mesh.tp;
  const DataType type = TypeOf(plan.run.compute_type);
  if (ranks == 1) return {};
  const Call sums = {Axis::kTp, Operation::kAllReduce, numbers, type, 2};
  if (!plan.run.sequence_parallel) return {{sums}, {sums}};
  const Call scatters = {Axis::kTp, Operation::kReduceScatter, numbers, type, 2};
  Call gathers = {Axis::kTp, Operation::kAllGather, numbers / ranks, type, 2};
  PassCalls calls = {{gathers, scatters}, {gathers, scatters}};
  // A backward in two parts needs the gradients of all rows in both.
  if (plan.run.schedule == ScheduleKind::kZbH1 || plan.run.schedule == ScheduleKind::kZbv) {
    calls.backward[0].count *= 2;
  }
  return calls;
}

// Key heads of a rank.
std::int64_t LocalKeyHeads(const PlannedModel& model, int tp) {
  const std::int64_t heads = model.heads / tp;
  if (model.key_heads % tp == 0) return model.key_heads / tp;
  // Whole keys on every rank: one for each query head, or one for all of a rank that is within a group.
  return model.heads / model.key_heads % heads == 0 ? 1 : heads;
}

PassCalls ContextCalls(const StepPlan& plan) {
  const std::int64_t ranks = plan.run.mesh.cp;
  if (ranks == 1) return {};
  const DataType type = TypeOf(plan.run.compute_type);
  const std::int64_t per_head = plan.rows() * plan.model.head_width;
  const std::int64_t heads = plan.model.heads / plan.run.mesh.tp;
  const std::int64_t key_heads = LocalKeyHeads(plan.model, plan.run.mesh.tp);
  if (plan.run.context == ContextKind::kUlysses) {
    const std::int64_t keys = key_heads % ranks == 0 ? key_heads : heads;
    const std::vector<Call> calls = {{Axis::kCp, Operation::kAllToAll, heads * per_head, type, 2},
                                     {Axis::kCp, Operation::kAllToAll, keys * per_head, type, 2}};
    return {calls, calls};
  }
  const std::int64_t keys_values = 2 * key_heads * per_head;
  const Call shift = {Axis::kCp, Operation::kSend, keys_values, type, ranks - 1};
  return {{shift}, {shift, {Axis::kCp, Operation::kSend, keys_values, SumType(plan.run), ranks - 1}}};
}

bool Has(const std::vector<std::string>& axes, const char* axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Elements of this rank's shard whose gradients are partial along the axis.
std::int64_t PartialCount(const UnitPart& part, const FlatLayout& layout, int shard_rank, const char* axis) {
  std::int64_t count = 0;
  for (const FlatSlice& slice : layout.Slices(shard_rank)) {
    if (Has(part[slice.parameter]->placement.partial, axis)) count += slice.end - slice.begin;
  }
  return count;
}

// One all-reduce per axis for all units.
void AddPartialSums(const StepPlan& plan, const UnitPart& part, const FlatLayout& layout, int shard_rank,
                    int units, std::vector<Call>& calls) {
  for (const Axis axis : {Axis::kTp, Axis::kEnds}) {
    if (SizeOf(plan.run, axis) == 1) continue;
    const std::int64_t count = PartialCount(part, layout, shard_rank, Name(axis));
    if (count == 0) continue;
    auto call = std::find_if(calls.begin(), calls.end(), [axis](const Call& c) { return c.axis == axis; });
    if (call == calls.end()) {
      calls.push_back({axis, Operation::kAllReduce, 0, TypeOf(plan.run.master_type)});
      call = calls.end() - 1;
    }
    call->elements += units * count;
  }
}

// Times that the shards of gradients are reduced in a step.
int Reductions(const StepPlan& plan, int pp_rank) {
  if (!plan.run.reduce_each_micro_batch || !ShardsGradients(plan.run.strategy)) return 1;
  const std::vector<Action>& actions = plan.schedule.actions[pp_rank];
  return static_cast<int>(std::count_if(actions.begin(), actions.end(), [](const Action& a) {
    return a.kind == ActionKind::kBackward || a.kind == ActionKind::kWeightGradient;
  }));
}

// The calls of `units` equal units with `gathers` all-gathers in total.
void AddUnitCalls(const StepPlan& plan, const models::ParameterUnit& unit, const RankPlace& place, int units,
                  int gathers, StateCalls& calls) {
  const PlannedRun& run = plan.run;
  const int shards = run.shard_ranks();
  const bool root = unit.block == models::ParameterUnit::kRoot;
  const DataType master = TypeOf(run.master_type);
  for (const UnitPart& part : PartsOf(unit, run.strategy, run.part_bytes)) {
    const FlatLayout layout = LayoutOf(part, shards);
    calls.parameters += units * layout.count();
    if (layout.count() == 0) continue;
    if (shards > 1) {
      (root ? calls.root_gathers : calls.block_gathers)
          .push_back(
              {Axis::kShard, Operation::kAllGather, layout.shard_count(), TypeOf(run.compute_type), gathers});
      calls.reductions.push_back({Axis::kShard, Operation::kReduceScatter, layout.count(), master,
                                  std::int64_t{units} * Reductions(plan, place.pp)});
    }
    if (run.replicate_ranks() > 1) {
      calls.reductions.push_back(
          {Axis::kReplicate, Operation::kAllReduce, layout.shard_count(), master, units});
    }
    AddPartialSums(plan, part, layout, place.dp_shard, units, calls.partial_sums);
  }
}

// Messages of a micro-batch's forward pass that the rank sends; of backward if `back`.
std::int64_t MessagesOf(const Schedule& schedule, int pp_rank, bool back) {
  std::int64_t count = 0;
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    const int next = back ? stage - 1 : stage + 1;
    if (schedule.rank_of_stage[stage] != pp_rank || next < 0 || next >= schedule.stages()) continue;
    count += schedule.rank_of_stage[next] != pp_rank ? 1 : 0;
  }
  return count;
}

}  // namespace

absl::StatusOr<StepPlan> StepPlan::Make(const PlannedModel& model, const PlannedRun& run) {
  PLAIT_RETURN_IF_ERROR(CheckSplit(model, run.mesh, run.sequence_parallel));
  if (run.mesh.cp > 1 && run.context == ContextKind::kUlysses &&
      model.heads % (run.mesh.cp * run.mesh.tp) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cp=", run.mesh.cp, ": Ulysses splits ", model.heads,
                                                   " heads; expected a multiple of cp x tp, or a ring"));
  }
  PLAIT_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(run.schedule, {.ranks = run.mesh.pp,
                                                                        .chunks = run.chunks,
                                                                        .micro_batches = run.micro_batches}));
  StageCosts costs = CostsByParameters(UnitsOnRank(model, run.mesh, run.sequence_parallel, 0));
  costs.blocks.resize(static_cast<std::size_t>(model.blocks), costs.blocks[0]);
  PLAIT_ASSIGN_OR_RETURN(std::vector<StageRange> stages, SplitBlocks(costs, schedule.stages()));
  return StepPlan{model, run, std::move(schedule), std::move(stages)};
}

const char* Name(Axis axis) {
  constexpr const char* kNames[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp", kEndsAxis};
  return kNames[static_cast<int>(axis)];
}

int SizeOf(const PlannedRun& run, Axis axis) {
  const MeshSizes& mesh = run.mesh;
  const int sizes[] = {mesh.pp, run.replicate_ranks(), run.shard_ranks(), mesh.cp,
                       mesh.tp, mesh.pp > 1 ? 2 : 1};
  return sizes[static_cast<int>(axis)];
}

std::int64_t WireBytes(const Call& call, const PlannedRun& run) {
  const comm::Buffer payload = {nullptr, call.elements, call.type};
  // The sender of a message must not be its receiver.
  const comm::Request request = {.operation = call.operation,
                                 .in = payload,
                                 .out = payload,
                                 .root = call.operation == Operation::kSend ? 1 : -1};
  return call.count * comm::WireBytes(request, /*rank=*/0, SizeOf(run, call.axis));
}

PassCalls BlockCalls(const StepPlan& plan) {
  PassCalls calls = TensorCalls(plan);
  const PassCalls context = ContextCalls(plan);
  Append(calls.forward, context.forward, 1);
  Append(calls.backward, context.backward, 1);
  return calls;
}

PassCalls PrologueCalls(const StepPlan& plan) {
  const std::int64_t numbers = plan.rows() * plan.model.width, ranks = plan.run.mesh.tp;
  const DataType type = TypeOf(plan.run.compute_type);
  if (ranks == 1) return {};
  const Call gather = {Axis::kTp, Operation::kAllGather, numbers / ranks, type};
  if (plan.model.images) {
    return plan.run.sequence_parallel ? PassCalls{{}, {gather}} : PassCalls{};
  }
  if (!plan.run.sequence_parallel) return {{{Axis::kTp, Operation::kAllReduce, numbers, type}}, {}};
  return {{{Axis::kTp, Operation::kReduceScatter, numbers, type}}, {gather}};
}

PassCalls EpilogueCalls(const StepPlan& plan) {
  const std::int64_t numbers = plan.rows() * plan.model.width, ranks = plan.run.mesh.tp;
  const DataType type = TypeOf(plan.run.compute_type);
  PassCalls calls;
  if (plan.model.images && plan.run.mesh.cp > 1) {
    const Call pooled = {Axis::kCp, Operation::kAllReduce, plan.run.micro_batch * plan.model.width, type};
    calls = {{pooled}, {pooled}};
  }
  if (ranks == 1) return calls;
  if (plan.run.sequence_parallel)
    calls.forward.push_back({Axis::kTp, Operation::kAllGather, numbers / ranks, type});
  if (plan.model.images) return calls;
  calls.forward.push_back({Axis::kTp, Operation::kAllReduce, plan.rows(), SumType(plan.run)});
  calls.forward.push_back({Axis::kTp, Operation::kAllReduce, 2 * plan.rows(), SumType(plan.run)});
  calls.backward = {{Axis::kTp,
                     plan.run.sequence_parallel ? Operation::kReduceScatter : Operation::kAllReduce, numbers,
                     type}};
  return calls;
}

Call MessageBetweenStages(const StepPlan& plan) {
  const std::int64_t parts = plan.run.sequence_parallel ? plan.run.mesh.tp : 1;
  return {Axis::kPp, Operation::kSend, plan.rows() * plan.model.width / parts, TypeOf(plan.run.compute_type)};
}

RankUnits UnitsOf(const StepPlan& plan, const RankPlace& place) {
  RankUnits units;
  // As if the model's one block were on this rank's first stage.
  std::vector<StageRange> stages = plan.stages;
  bool has_block = false;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const bool mine = plan.schedule.rank_of_stage[stage] == place.pp;
    units.blocks += mine ? stages[stage].count : 0;
    stages[stage].count = mine && !has_block ? 1 : 0;
    has_block = has_block || mine;
  }
  for (RankUnit& unit :
       UnitsOfRank(UnitsOnRank(plan.model, plan.run.mesh, plan.run.sequence_parallel, place.tp), stages,
                   plan.schedule.rank_of_stage, place.pp)) {
    if (unit.unit.block == models::ParameterUnit::kRoot) {
      units.roots.push_back(std::move(unit.unit));
    } else {
      units.block = std::move(unit.unit);
    }
  }
  return units;
}

StateCalls StateCallsOf(const StepPlan& plan, const RankPlace& place) {
  const PlannedRun& run = plan.run;
  const RankUnits units = UnitsOf(plan, place);
  int root_gathers = 1, block_gathers = units.blocks;
  if (ShardsParameters(run.strategy) && run.shard_ranks() > 1) {
    const GatherCount gathers =
        CountGathers(plan.schedule, plan.stages, place.pp, run.reshard_after_forward, run.prefetch);
    root_gathers = gathers.roots;
    block_gathers = std::accumulate(gathers.blocks.begin(), gathers.blocks.end(), 0);
  }
  StateCalls calls;
  for (const models::ParameterUnit& root : units.roots)
    AddUnitCalls(plan, root, place, 1, root_gathers, calls);
  AddUnitCalls(plan, units.block, place, units.blocks, block_gathers, calls);
  return calls;
}

std::vector<AxisTraffic> TrafficOf(const StepPlan& plan, const RankPlace& place) {
  std::vector<Call> calls;
  const std::int64_t passes = plan.run.micro_batches;
  const auto add = [&](const PassCalls& of, std::int64_t times) {
    Append(calls, of.forward, times * passes);
    Append(calls, of.backward, times * passes);
  };
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.schedule.rank_of_stage[stage] != place.pp) continue;
    add(BlockCalls(plan), plan.stages[stage].count);
    if (plan.stages[stage].prologue) add(PrologueCalls(plan), 1);
    if (plan.stages[stage].epilogue) add(EpilogueCalls(plan), 1);
  }
  const std::int64_t messages =
      MessagesOf(plan.schedule, place.pp, false) + MessagesOf(plan.schedule, place.pp, true);
  Append(calls, {MessageBetweenStages(plan)}, messages * passes);
  const StateCalls state = StateCallsOf(plan, place);
  for (const auto* of : {&state.root_gathers, &state.block_gathers, &state.reductions, &state.partial_sums}) {
    Append(calls, *of, 1);
  }
  std::map<std::pair<Axis, Operation>, AxisTraffic> sums;
  for (const Call& call : calls) {
    if (call.count == 0) continue;
    AxisTraffic& sum = sums[{call.axis, call.operation}];
    sum.axis = Name(call.axis);
    sum.operation = call.operation;
    sum.calls += call.count;
    sum.wire_bytes += WireBytes(call, plan.run);
  }
  std::vector<AxisTraffic> traffic;
  for (const auto& [key, sum] : sums) traffic.push_back(sum);
  return traffic;
}

}  // namespace plait::parallel
