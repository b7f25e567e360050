// Which strategy to choose, by a decision tree over numbers of the model and the cluster.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<Estimate> ranked, Search(model, run, {.samples = 256}, cluster));
//   PLAIT_ASSIGN_OR_RETURN(const Advice advice, Advise(model, run, {.samples = 256}, cluster, ranked));
//   std::cout << advice.choice;    // "data x pipeline x tensor parallelism with ZeRO-1"
//   for (const std::string& reason : advice.reasons) std::cout << reason;
//
//   one rank       fits: no change. Does not fit: ZeRO with offload; with tiling, if the largest layer does not fit
//   one node       fits on a rank: DDP or ZeRO. Does not fit: PP, ZeRO or TP; over slow links PP before ZeRO and TP
//   several nodes  fast links: ZeRO, or PP x TP x DP (x ZeRO). Slow links: DDP or ZeRO-1 if the model fits on a rank,
//                  else DP x PP x TP x ZeRO-1. TP stays within a node
//
// "Fits": parameters, masters, gradients, moments and the activations of one sample. "Slow": the messages of ZeRO-3
// (three times the parameters) would take longer than the computation of a step. Local.
#ifndef PLAIT_PARALLEL_PLAN_ADVICE_H_
#define PLAIT_PARALLEL_PLAN_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/plan/mesh_search.h"

namespace plait::parallel {

enum class Decision {
  kOneRank,           // one rank, no change
  kOffload,           // ZeRO, states on the host or in files
  kTiling,            // as kOffload, and the largest layer in tiles
  kReplicate,         // DDP or ZeRO
  kSplitOnNode,       // PP, ZeRO or TP, whichever is quickest
  kStagesOnNode,      // PP before ZeRO and TP
  kShardAcrossNodes,  // ZeRO, or PP x TP x DP
  kReplicateSlowly,   // DDP or ZeRO-1
  kEverything,        // DP x PP x TP x ZeRO-1
};

struct Advice {
  Decision decision = Decision::kOneRank;
  std::string choice;
  std::vector<std::string> reasons;  // a sentence each
  // The fastest mesh of the choice that fits; nullopt for kOffload and kTiling, or if there is none.
  std::optional<Estimate> best;
  // Why there is none, a sentence: memory, or why `ranked` has no mesh of the choice. Empty if `best` has a value, and
  // for kOffload and kTiling.
  std::string why_none;
};

// For options.ranks ranks. `ranked` is the result of Search with the same arguments. Errors of EstimateOf.
absl::StatusOr<Advice> Advise(const PlannedModel& model, const PlannedRun& base, const SearchOptions& options,
                              const Cluster& cluster, const std::vector<Estimate>& ranked);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_ADVICE_H_
