// Which of a model's states are replicated along the shard axis, and which are sharded.
//
//   strategy   parameters   gradients    optimizer state    also known as
//   ddp        replicated   replicated   replicated         data parallelism (shard axis of one rank)
//   zero1      replicated   replicated   sharded            ZeRO-1, distributed optimizer
//   zero2      replicated   sharded      sharded            ZeRO-2, FSDP's SHARD_GRAD_OP
//   fsdp       sharded      sharded      sharded            ZeRO-3, FSDP's FULL_SHARD
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

// INVALID_ARGUMENT, listing the known names, for another one. "zero3" is "fsdp".
absl::StatusOr<Strategy> ParseStrategy(absl::string_view name);

inline bool ShardsGradients(Strategy s) { return s == Strategy::kZero2 || s == Strategy::kFsdp; }
inline bool ShardsParameters(Strategy s) { return s == Strategy::kFsdp; }

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_STRATEGY_H_
