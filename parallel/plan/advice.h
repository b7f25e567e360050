// Which strategy to choose, by questions whose answers are numbers of the model and the cluster.
//
//   PLAIT_ASSIGN_OR_RETURN(const Advice advice, Advise(model, run, {.samples = 256}, cluster));
//   std::cout << advice.choice;                        // "ZeRO, or stages x tensor x data parallel"
//   for (const std::string& reason : advice.reasons) std::cout << reason;
//
//   one rank       fits: as it is. Does not: ZeRO with offload; with tiling, where the largest layer does not fit either
//   one node       fits on a rank: DDP or ZeRO. Does not: PP, ZeRO or TP; over slow links PP before ZeRO and TP
//   several nodes  fast links: ZeRO, or PP x TP x DP (x ZeRO). Slow links: DDP or ZeRO-1 where the model fits on a rank,
//                  else DP x PP x TP x ZeRO-1. TP stays within a node
//
// "Fits": states and activations of one sample, float32 masters and moments included. "Slow": the messages of ZeRO-3
// (three times the parameters) would take longer than the computing of a step. Local.
#ifndef PLAIT_PARALLEL_PLAN_ADVICE_H_
#define PLAIT_PARALLEL_PLAN_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/plan/mesh_search.h"

namespace plait::parallel {

enum class Decision {
  kOneRank,           // as it is
  kOffload,           // ZeRO, states on the host or in files
  kTiling,            // and the largest layer in tiles
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
  // The quickest mesh of the choice that fits; nothing for kOffload and kTiling, or where none does.
  std::optional<Estimate> best;
};

// For the ranks of `options`; `base` as for Search, whose result `ranked` is.
absl::StatusOr<Advice> Advise(const PlannedModel& model, const PlannedRun& base, const SearchOptions& options,
                              const Cluster& cluster, const std::vector<Estimate>& ranked);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_ADVICE_H_
