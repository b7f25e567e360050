#include "parallel/plan/advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "comm/tensor_type.h"

namespace plait::parallel {
namespace {

constexpr double kGiga = 1e9;

// What the questions are about.
struct Facts {
  int ranks = 1;
  bool several_nodes = false;
  double one_rank_bytes = 0;       // states and one sample
  double largest_layer_bytes = 0;  // its weight and its gradient
  double memory = 0;
  double message_seconds = 0, compute_seconds = 0;

  bool fits() const { return one_rank_bytes <= memory; }
  bool layer_fits() const { return largest_layer_bytes <= memory; }
  bool slow() const { return message_seconds > compute_seconds; }
};

double BytesOf(at::ScalarType type) { return static_cast<double>(c10::elementSize(type)); }

double LargestLayer(const PlannedModel& model, const PlannedRun& run) {
  std::int64_t largest = 0;
  for (const models::ParameterUnit& unit : model.model->units()) {
    for (const models::ParameterSpec& p : unit.parameters) largest = std::max(largest, p.tensor.numel());
  }
  return static_cast<double>(largest) * (BytesOf(run.compute_type) + BytesOf(run.master_type));
}

// Of ZeRO-3 on all ranks: parameters gathered twice, gradients scattered.
double MessageSeconds(const PlannedModel& model, const PlannedRun& run, int ranks, const Cluster& cluster) {
  const PlannedRun sharded = {.mesh = {.dp_shard = ranks}, .strategy = Strategy::kFsdp};
  const std::int64_t parameters = model.ParameterCount();
  const Call gathers = {Axis::kShard, comm::Operation::kAllGather, parameters / ranks,
                        comm::TypeOf(run.compute_type), 2};
  const Call scatter = {Axis::kShard, comm::Operation::kReduceScatter, parameters,
                        comm::TypeOf(run.master_type)};
  return SecondsOf(gathers, sharded, cluster) + SecondsOf(scatter, sharded, cluster);
}

absl::StatusOr<Facts> FactsOf(const PlannedModel& model, const PlannedRun& base, const SearchOptions& options,
                              const Cluster& cluster) {
  PlannedRun alone = base;
  alone.mesh = {};
  alone.strategy = Strategy::kDdp;
  alone.sequence_parallel = false;
  alone.micro_batch = alone.micro_batches = 1;
  PLAIT_ASSIGN_OR_RETURN(const Estimate one, EstimateOf(model, alone, cluster));
  Facts facts = {.ranks = options.ranks > 0 ? options.ranks : cluster.ranks()};
  facts.several_nodes = facts.ranks > cluster.ranks_per_node;
  facts.one_rank_bytes = static_cast<double>(one.memory.total_bytes());
  facts.largest_layer_bytes = LargestLayer(model, base);
  facts.memory = cluster.memory_bytes;
  facts.message_seconds = MessageSeconds(model, base, facts.ranks, cluster);
  facts.compute_seconds =
      (one.time.products + one.time.activations) * static_cast<double>(options.samples) / facts.ranks;
  return facts;
}

Decision Decide(const Facts& facts) {
  if (facts.ranks == 1) {
    if (facts.fits()) return Decision::kOneRank;
    return facts.layer_fits() ? Decision::kOffload : Decision::kTiling;
  }
  if (!facts.several_nodes) {
    if (facts.fits()) return Decision::kReplicate;
    return facts.slow() ? Decision::kStagesOnNode : Decision::kSplitOnNode;
  }
  if (!facts.slow()) return Decision::kShardAcrossNodes;
  return facts.fits() ? Decision::kReplicateSlowly : Decision::kEverything;
}

const char* ChoiceOf(Decision decision) {
  switch (decision) {
    case Decision::kOneRank:
      return "one rank, no change";
    case Decision::kOffload:
      return "ZeRO with offload: --strategy=fsdp --offload=DIRECTORY [--offload-params]";
    case Decision::kTiling:
      return "ZeRO with offload and tiling: as offload, and the largest layer in tiles (parallel/tiling)";
    case Decision::kReplicate:
      return "DDP, or ZeRO for larger micro-batches: no change of the model";
    case Decision::kSplitOnNode:
      return "pipeline, ZeRO or tensor parallelism, whichever is first in the table";
    case Decision::kStagesOnNode:
      return "pipeline parallelism before ZeRO and tensor parallelism";
    case Decision::kShardAcrossNodes:
      return "ZeRO (no change of the model), or pipeline x tensor x data parallelism (fewer bytes between "
             "nodes)";
    case Decision::kReplicateSlowly:
      return "DDP or ZeRO-1: gradients and parameters travel once a step";
    case Decision::kEverything:
      return "data x pipeline x tensor parallelism with ZeRO-1";
  }
  return "";
}

// Whether a mesh is of the choice.
bool IsOf(Decision decision, const PlannedRun& run) {
  const MeshSizes& mesh = run.mesh;
  const bool whole = mesh.pp == 1 && mesh.cp == 1 && mesh.tp == 1;
  switch (decision) {
    case Decision::kReplicate:
      return whole;
    case Decision::kReplicateSlowly:
      return whole && !ShardsGradients(run.strategy);
    case Decision::kStagesOnNode:
      return mesh.pp > 1;
    case Decision::kEverything:
      return mesh.pp > 1 && !ShardsGradients(run.strategy);
    case Decision::kOffload:
    case Decision::kTiling:
      return false;
    default:
      return true;
  }
}

std::vector<std::string> ReasonsOf(const Facts& facts, const Cluster& cluster, Decision decision) {
  std::vector<std::string> reasons = {absl::StrFormat(
      "The model's states and one sample %s a rank: %.3f of %.3f GB.",
      facts.fits() ? "fit on" : "do not fit on", facts.one_rank_bytes / kGiga, facts.memory / kGiga)};
  if (!facts.fits()) {
    reasons.push_back(
        absl::StrFormat("The largest layer %s: its weight and gradient take %.3f GB%s.",
                        facts.layer_fits() ? "fits" : "does not", facts.largest_layer_bytes / kGiga,
                        facts.layer_fits() || facts.ranks == 1 ? "" : "; split it (tp) or tile it"));
  }
  if (decision == Decision::kOffload || decision == Decision::kTiling) {
    reasons.push_back(absl::StrFormat(
        "For offload there are %.3f GB: %s.", cluster.offload_bytes / kGiga,
        cluster.offload_bytes >= facts.one_rank_bytes ? "enough" : "too little; take disks, or more ranks"));
  }
  if (facts.ranks == 1) return reasons;
  reasons.push_back(absl::StrFormat(
      "Links are %s for this batch: ZeRO-3's messages take %.4g s of a step, its computing %.4g s.",
      facts.slow() ? "slow" : "fast", facts.message_seconds, facts.compute_seconds));
  if (facts.several_nodes) {
    reasons.push_back(
        absl::StrFormat("Tensor parallelism stays within a node: tp <= %d.", cluster.ranks_per_node));
  }
  return reasons;
}

std::string WhyNoneFits(const Estimate& smallest, const Facts& facts) {
  return absl::StrFormat("No mesh of this choice fits: the smallest, %s with %s, needs %.3f of %.3f GB.",
                         ToText(smallest.run.mesh), Name(smallest.run.strategy),
                         static_cast<double>(smallest.memory.total_bytes()) / kGiga, facts.memory / kGiga);
}

// What Search leaves out, of the meshes that IsOf takes.
std::string WhyNoneIsThere(Decision decision, const Facts& facts, const PlannedModel& model,
                           const SearchOptions& options) {
  const bool stages = decision == Decision::kStagesOnNode || decision == Decision::kEverything;
  if (!stages && options.samples % facts.ranks != 0) {
    return absl::StrFormat(
        "No mesh of this choice can split the step: %d samples; expected a multiple of its %d data ranks.",
        options.samples, facts.ranks);
  }
  const std::string strategies =
      absl::StrJoin(options.strategies, " or ",
                    [](std::string* out, Strategy strategy) { absl::StrAppend(out, Name(strategy)); });
  const bool once_a_step = decision == Decision::kReplicateSlowly || decision == Decision::kEverything;
  if (once_a_step && !strategies.empty() &&
      std::all_of(options.strategies.begin(), options.strategies.end(), ShardsGradients)) {
    return absl::StrFormat("The search is limited to %s; a mesh of this choice has ddp or zero1.",
                           strategies);
  }
  return absl::StrFormat(
      "No mesh of this choice%s can split the step: %d samples and %d blocks; expected a multiple of its "
      "data ranks, with at least as many samples for each of them as stages, and as many blocks.",
      strategies.empty() ? "" : " with " + strategies, options.samples, model.blocks);
}

}  // namespace

absl::StatusOr<Advice> Advise(const PlannedModel& model, const PlannedRun& base, const SearchOptions& options,
                              const Cluster& cluster, const std::vector<Estimate>& ranked) {
  PLAIT_ASSIGN_OR_RETURN(const Facts facts, FactsOf(model, base, options, cluster));
  const Decision decision = Decide(facts);
  Advice advice = {.decision = decision,
                   .choice = ChoiceOf(decision),
                   .reasons = ReasonsOf(facts, cluster, decision),
                   .best = std::nullopt,
                   .why_none = {}};
  const auto is_of_choice = [&](const Estimate& e) { return IsOf(decision, e.run); };
  const auto best = std::find_if(ranked.begin(), ranked.end(),
                                 [&](const Estimate& e) { return e.fits && is_of_choice(e); });
  if (best != ranked.end()) {
    advice.best = *best;
  } else if (decision != Decision::kOffload && decision != Decision::kTiling) {
    const auto smallest = std::find_if(ranked.begin(), ranked.end(), is_of_choice);
    advice.why_none = smallest != ranked.end() ? WhyNoneFits(*smallest, facts)
                                               : WhyNoneIsThere(decision, facts, model, options);
  }
  return advice;
}

}  // namespace plait::parallel
