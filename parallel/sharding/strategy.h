// Which of a model's states every rank of the shard axis holds whole, and which it holds a share of.
//
//   strategy   parameters   gradients   optimizer state    also known as
//   ddp        whole        whole       whole              data parallelism (shard axis of one rank)
//   zero1      whole        whole       share              ZeRO-1, distributed optimizer
//   zero2      whole        share       share              ZeRO-2, FSDP that keeps parameters
//   fsdp       share        share       share              ZeRO-3
//
// With a second axis of replicas in the mesh, fsdp is HSDP. Rajbhandari et al., "ZeRO: Memory optimizations
// toward training trillion parameter models", SC 2020, section 5; Zhao et al., "PyTorch FSDP", VLDB 2023.
#ifndef PLAIT_PARALLEL_SHARDING_STRATEGY_H_
#define PLAIT_PARALLEL_SHARDING_STRATEGY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::parallel {

enum class Strategy { kDdp, kZero1, kZero2, kFsdp };

absl::string_view Name(Strategy strategy);  // "ddp", "zero1", "zero2", "fsdp"

std::vector<std::string> StrategyNames();

// InvalidArgument with the names that there are. "zero3" is "fsdp".
absl::StatusOr<Strategy> ParseStrategy(absl::string_view name);

inline bool ShardsGradients(Strategy s) { return s == Strategy::kZero2 || s == Strategy::kFsdp; }
inline bool ShardsParameters(Strategy s) { return s == Strategy::kFsdp; }

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_STRATEGY_H_
