#include "parallel/plan/memory_plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "parallel/sharding/flat_layout.h"

namespace plait::parallel {
namespace {

// An upper bound: a reduction that is waited for when the next one starts (Reductions::StartNext), that one, and the
// unit that backward is in.
constexpr std::int64_t kGradientsInWork = 3;

std::int64_t BytesOf(at::ScalarType type) { return static_cast<std::int64_t>(c10::elementSize(type)); }

bool IsMixed(const MemoryPlanRequest& request) { return request.master_type != request.compute_type; }

// Masters are offloaded: !DataParallel::masters_resident().
bool MastersLeave(const MemoryPlanRequest& request) {
  return request.masters_offload != OffloadTarget::kMemory &&
         (IsMixed(request) || request.offloads_parameters);
}

using Has = bool (*)(const MemoryPlanRequest& request, const PlannedUnit& unit);

bool Any(const MemoryPlanRequest&, const PlannedUnit&) { return true; }

bool HasShards(const MemoryPlanRequest& request, const PlannedUnit& unit) {
  return ShardsParameters(request.strategy) && (unit.shard_ranks > 1 || request.offloads_parameters);
}

bool HasGradientShards(const MemoryPlanRequest& request, const PlannedUnit& unit) {
  return ShardsGradients(request.strategy) && unit.shard_ranks > 1;
}

// Ranks that share a unit's elements of one kind of memory; 0: the unit takes none.
using Ranks = int (*)(const MemoryPlanRequest& request, const PlannedUnit& unit);

int RanksOfParameters(const MemoryPlanRequest& request, const PlannedUnit& unit) {
  if (!HasShards(request, unit)) return 1;
  return MastersLeave(request) && !request.offloads_parameters ? unit.shard_ranks : 0;
}

int RanksOfMasters(const MemoryPlanRequest& request, const PlannedUnit& unit) {
  return IsMixed(request) || HasShards(request, unit) ? unit.shard_ranks : 0;
}

int RanksOfGradients(const MemoryPlanRequest& request, const PlannedUnit& unit) {
  return HasGradientShards(request, unit) ? unit.shard_ranks : 1;
}

int RanksOfAddedGradients(const MemoryPlanRequest& request, const PlannedUnit& unit) {
  return request.adds_unsharded_gradients && HasGradientShards(request, unit) ? 1 : 0;
}

// Of what the optimizer updates.
int RanksOfShard(const MemoryPlanRequest&, const PlannedUnit& unit) { return unit.shard_ranks; }

int RanksOfWhole(const MemoryPlanRequest&, const PlannedUnit&) { return 1; }

std::int64_t Count(const MemoryPlanRequest& request, Ranks ranks_of) {
  std::int64_t count = 0;
  for (const PlannedUnit& unit : request.units) {
    if (const int ranks = ranks_of(request, unit); ranks > 0) count += unit.count / ranks;
  }
  return count;
}

// Elements of buffers that are reused by size while at most `most` blocks are in use: for each size as many as there
// are blocks of it, at most `most`. Root units have their own.
std::int64_t InWork(const MemoryPlanRequest& request, std::int64_t most, Has has) {
  std::int64_t elements = 0;
  std::map<std::int64_t, std::int64_t> blocks_of_size;
  for (const PlannedUnit& unit : request.units) {
    if (!has(request, unit)) continue;
    if (unit.root) {
      elements += unit.count;
    } else {
      ++blocks_of_size[unit.count];
    }
  }
  for (const auto& [size, blocks] : blocks_of_size) elements += size * std::min(blocks, most);
  return elements;
}

std::int64_t MomentsPerParameter(const MemoryPlanRequest& request) {
  if (request.optimizer != OptimizerKind::kSgd) return 2;
  return request.momentum ? 1 : 0;
}

struct Bytes {
  std::int64_t memory = 0, file = 0;
};

// Shards of `bytes` per parameter. kHost counts as memory: without a GPU it is the same.
Bytes BytesIn(OffloadTarget place, const MemoryPlanRequest& request, std::int64_t bytes, Ranks ranks_of) {
  if (place != OffloadTarget::kFile) return {.memory = bytes * Count(request, ranks_of)};
  Bytes planned;
  for (const PlannedUnit& unit : request.units) {
    const int ranks = ranks_of(request, unit);
    if (ranks == 0) continue;
    const std::int64_t share = bytes * unit.count / ranks;
    const std::int64_t slot = (share + kStateBlockBytes - 1) / kStateBlockBytes * kStateBlockBytes;
    planned.file += slot;
    planned.memory = std::max(planned.memory, 2 * slot);
  }
  return planned;
}

void PlanParameters(MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  plan.parameter_bytes = BytesOf(request.compute_type) * Count(request, RanksOfParameters);
  const OffloadTarget place = MastersLeave(request) ? request.masters_offload : OffloadTarget::kMemory;
  const Bytes masters = BytesIn(place, request, BytesOf(request.master_type), RanksOfMasters);
  plan.master_bytes = masters.memory;
  plan.master_file_bytes = masters.file;
}

void PlanGradients(MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  const std::int64_t e = BytesOf(request.master_type);
  plan.gradient_bytes = e * (Count(request, RanksOfGradients) + Count(request, RanksOfAddedGradients));
  if (request.leaves == 0) return;
  const std::int64_t levels = std::bit_width(static_cast<unsigned>(request.leaves)) - 1;
  plan.gradient_bytes += e * (levels * Count(request, RanksOfWhole) + (1 + levels) * InWork(request, 0, Any));
}

void PlanMoments(MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  const Bytes moments = BytesIn(request.moments_offload, request,
                                MomentsPerParameter(request) * BytesOf(request.master_type), RanksOfShard);
  plan.moment_bytes = moments.memory;
  plan.moment_file_bytes = moments.file;
}

void PlanWork(MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  if (request.working_bytes >= 0) {
    plan.working_bytes = request.working_bytes;
    return;
  }
  const std::int64_t e = BytesOf(request.master_type), c = BytesOf(request.compute_type);
  if (!request.adds_unsharded_gradients) {
    plan.working_bytes += e * InWork(request, kGradientsInWork, HasGradientShards);
  }
  const std::int64_t unsharded_blocks =
      request.reshard_after_forward ? (request.prefetch ? 2 : 1) : std::numeric_limits<std::int64_t>::max();
  plan.working_bytes += c * InWork(request, unsharded_blocks, HasShards);
}

void PlanSave(MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  if (!request.saves_asynchronously) return;
  constexpr std::int64_t kPageBytes = std::int64_t{1} << 21;  // parallel/checkpoint/async_saver.cc
  const std::int64_t masters = BytesOf(request.master_type) * Count(request, RanksOfShard);
  const std::int64_t moments = MomentsPerParameter(request) * masters;
  plan.save_bytes = (masters + moments + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (MastersLeave(request)) plan.save_bytes += masters;
  if (request.moments_offload != OffloadTarget::kMemory) plan.save_bytes += moments;
}

std::string Line(const char* what, std::int64_t bytes, const std::string& note) {
  return absl::StrFormat("  %-15s %12.3f MB   %s\n", what, bytes / 1e6, note);
}

// "float32, sharded 1/8"; where experts are sharded over other ranks "float32, sharded 1/8 and unsharded".
std::string ShardNote(const MemoryPlanRequest& request, at::ScalarType type, Ranks ranks_of) {
  std::set<int, std::greater<>> different;
  for (const PlannedUnit& unit : request.units) {
    if (const int ranks = ranks_of(request, unit); ranks > 0 && unit.count > 0) different.insert(ranks);
  }
  std::string note = c10::getDtypeNames(type).first;
  const char* separator = ", ";
  for (const int ranks : different) {
    absl::StrAppend(&note, separator, ranks > 1 ? absl::StrCat("sharded 1/", ranks) : "unsharded");
    separator = " and ";
  }
  return note;
}

std::string FileNote(std::int64_t bytes) {
  return bytes == 0 ? "" : absl::StrFormat("; %.3f MB in a file", bytes / 1e6);
}

std::string MomentNote(const MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  const char* kind = request.optimizer == OptimizerKind::kAdamW  ? "AdamW"
                     : request.optimizer == OptimizerKind::kAdam ? "Adam"
                     : request.optimizer == OptimizerKind::kMuon ? "Muon and AdamW"
                                                                 : "SGD";
  return absl::StrCat(kind, ", ", ShardNote(request, request.master_type, RanksOfShard),
                      FileNote(plan.moment_file_bytes));
}

std::string ActivationNote(const MemoryPlan& plan) {
  if (plan.activation_bytes == plan.request.evaluation_bytes) return "of evaluation";
  return absl::StrCat(plan.request.micro_batch, " samples per pass");
}

// What to change so that the plan fits into `bytes`.
std::string Advice(const MemoryPlan& plan, std::int64_t bytes) {
  if (plan.total_bytes() - plan.activation_bytes + plan.request.evaluation_bytes > bytes &&
      plan.request.evaluation_bytes > 0) {
    return absl::StrFormat("evaluation takes %.3f GB of it: evaluate fewer samples at a time",
                           plan.request.evaluation_bytes / 1e9);
  }
  const std::int64_t samples = LargestMicroBatch(plan, bytes);
  if (samples >= 1) return absl::StrCat("at most ", samples, " samples per rank and pass fit");
  MemoryPlanRequest other = plan.request;
  other.micro_batch = 1;
  other.strategy = Strategy::kFsdp;
  other.working_bytes = -1;  // what a dry run found is of this strategy
  if (plan.request.strategy != Strategy::kFsdp && plan.request.shard_ranks > 1 &&
      PlanMemory(other).total_bytes() <= bytes) {
    return "one sample would fit with strategy fsdp";
  }
  return "not even one sample fits: take more ranks along dp_shard with strategy fsdp, or a smaller model";
}

}  // namespace

std::vector<PlannedUnit> PlanUnits(const std::vector<models::ParameterUnit>& units, int shard_ranks,
                                   int expert_shard_ranks) {
  std::vector<PlannedUnit> planned;
  for (const models::ParameterUnit& unit : units) {
    std::vector<FlatParameter> parameters;
    for (const models::ParameterSpec& p : unit.parameters) {
      if (p.role == models::ParameterRole::kTrained)
        parameters.push_back({p.name, p.tensor.sizes().vec(), p.decays});
    }
    const int ranks = unit.shard_axis == "ep_shard" ? expert_shard_ranks : shard_ranks;
    const FlatLayout layout = FlatLayout::Make(std::move(parameters), ranks);
    const bool root = unit.block == models::ParameterUnit::kRoot;
    planned.push_back({unit.name, layout.parameter_count(), layout.count(), root, ranks});
  }
  return planned;
}

MemoryPlan PlanMemory(const MemoryPlanRequest& request) {
  PLAIT_CHECK(request.shard_ranks >= 1 && request.micro_batch >= 0)
      << request.shard_ranks << " ranks, " << request.micro_batch << " samples";
  MemoryPlan plan = {.request = request};
  for (const PlannedUnit& unit : request.units) {
    PLAIT_CHECK(unit.shard_ranks >= 1) << unit.shard_ranks << " ranks of unit \"" << unit.name << "\"";
    plan.model_parameters += unit.parameters;
  }
  PlanParameters(plan);
  PlanGradients(plan);
  PlanMoments(plan);
  PlanWork(plan);
  PlanSave(plan);
  plan.activation_bytes =
      std::max(request.fixed_activation_bytes + request.micro_batch * request.activation_bytes_per_sample,
               request.evaluation_bytes);
  return plan;
}

std::string MemoryPlanText(const MemoryPlan& plan) {
  const MemoryPlanRequest& request = plan.request;
  std::string text = absl::StrFormat(
      "Memory plan of a rank: %d parameters, %s, dp_replicate=%d, dp_shard=%d\n", plan.model_parameters,
      Name(request.strategy), request.replicate_ranks, request.shard_ranks);
  if (plan.parameter_bytes > 0) {
    absl::StrAppend(&text, Line("parameters", plan.parameter_bytes,
                                ShardNote(request, request.compute_type, RanksOfParameters)));
  }
  if (plan.master_bytes > 0) {
    absl::StrAppend(&text, Line("master", plan.master_bytes,
                                absl::StrCat(ShardNote(request, request.master_type, RanksOfMasters),
                                             FileNote(plan.master_file_bytes))));
  }
  absl::StrAppend(&text, Line("gradients", plan.gradient_bytes,
                              ShardNote(request, request.master_type, RanksOfGradients)));
  absl::StrAppend(&text, Line("moments", plan.moment_bytes, MomentNote(plan)));
  if (plan.working_bytes > 0) {
    absl::StrAppend(&text, Line("unsharded units", plan.working_bytes, "while they are used"));
  }
  if (plan.save_bytes > 0) {
    absl::StrAppend(&text, Line("checkpoint", plan.save_bytes, "copied while it is written"));
  }
  absl::StrAppend(&text, Line("activations", plan.activation_bytes, ActivationNote(plan)),
                  Line("total", plan.total_bytes(), "and the program itself"));
  return text;
}

std::int64_t LargestMicroBatch(const MemoryPlan& plan, std::int64_t bytes) {
  const std::int64_t left =
      bytes - (plan.total_bytes() - plan.activation_bytes) - plan.request.fixed_activation_bytes;
  if (left < plan.request.activation_bytes_per_sample) return 0;
  if (plan.request.activation_bytes_per_sample == 0) return std::numeric_limits<std::int64_t>::max();
  return left / plan.request.activation_bytes_per_sample;
}

absl::Status CheckFits(const MemoryPlan& plan, const NodeMemory& node, int ranks_on_node) {
  if (node.bytes < 0) return absl::OkStatus();
  const std::int64_t mine = node.bytes / std::max(ranks_on_node, 1);
  if (plan.total_bytes() <= mine) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the run needs %.3f GB on each rank, but only %.3f GB are available (%s: %.3f GB for %d rank%s): %s",
      plan.total_bytes() / 1e9, mine / 1e9, node.limited_by, node.bytes / 1e9, ranks_on_node,
      ranks_on_node == 1 ? "" : "s", Advice(plan, mine)));
}

}  // namespace plait::parallel
