#include "tools/cnn_training/config.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plait::cnn_training {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

template <typename Number>
absl::Status AtLeast(const char* flag, Number value, Number least) {
  if (value >= least) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": expected at least ", least));
}

absl::Status Between(const char* flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": expected ", low, " to ", high));
}

// Sizes of the axes as they are written; 0 for one that is not named, -1 for what is left of the ranks.
absl::StatusOr<MeshShape> WrittenMesh(const std::string& text) {
  const std::string wrong = absl::StrCat("--mesh=", text, ": expected axes and their ranks such as ",
                                         "dp_replicate=2,dp_shard=2, each at most once, -1 for the rest");
  MeshShape mesh = {.dp_replicate = 0, .dp_shard = 0};
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    int size = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[1], &size) || size < -1 || size == 0)
      return Invalid(wrong);
    int* const axis = sides[0] == "dp_replicate" ? &mesh.dp_replicate
                      : sides[0] == "dp_shard"   ? &mesh.dp_shard
                                                 : nullptr;
    if (axis == nullptr || *axis != 0) return Invalid(wrong);
    *axis = size;
  }
  if (mesh.dp_replicate == -1 && mesh.dp_shard == -1) return Invalid(wrong);
  if (mesh.dp_replicate == 0) mesh.dp_replicate = 1;
  if (mesh.dp_shard == 0) mesh.dp_shard = 1;
  return mesh;
}

absl::Status CheckPlaces(const Config& config) {
  if (!config.checkpoint_dir.empty() ||
      (config.checkpoint_every == 0 && config.keep_last == Config().keep_last)) {
    return absl::OkStatus();
  }
  return Invalid("--checkpoint-every and --keep-last are of no use without --checkpoint-dir; name a folder");
}

}  // namespace

absl::StatusOr<MeshShape> MeshOf(const Config& config, int ranks) {
  const bool ddp = StrategyOf(config) == parallel::Strategy::kDdp;
  if (config.mesh.empty()) return ddp ? MeshShape{ranks, 1} : MeshShape{1, ranks};
  PLAIT_ASSIGN_OR_RETURN(MeshShape mesh, WrittenMesh(config.mesh));
  if (mesh.dp_replicate == -1) mesh.dp_replicate = std::max(1, ranks / mesh.dp_shard);
  if (mesh.dp_shard == -1) mesh.dp_shard = std::max(1, ranks / mesh.dp_replicate);
  if (mesh.ranks() != ranks) {
    return Invalid(absl::StrCat("--mesh=", config.mesh, ": ", mesh.dp_replicate, " x ", mesh.dp_shard, " = ",
                                mesh.ranks(), " ranks, but there are ", ranks,
                                "; give --nproc=", mesh.ranks(), " or another mesh"));
  }
  if (ddp && mesh.dp_shard > 1) {
    return Invalid(absl::StrCat("--mesh=", config.mesh, ": ddp shards nothing; expected dp_shard=1, or ",
                                "--strategy=zero1, zero2 or fsdp"));
  }
  return mesh;
}

absl::StatusOr<int> RanksToStart(const Config& config, int cores) {
  if (config.nproc > 0) return config.nproc;
  if (!config.mesh.empty()) {
    PLAIT_ASSIGN_OR_RETURN(const MeshShape mesh, WrittenMesh(config.mesh));
    if (mesh.ranks() > 0) return mesh.ranks();
  }
  return std::clamp(cores, 1, kMostDefaultRanks);
}

parallel::Strategy StrategyOf(const Config& config) {
  return parallel::ParseStrategy(config.strategy).value_or(parallel::Strategy::kFsdp);
}

absl::Status Check(const Config& config, int ranks) {
  PLAIT_RETURN_IF_ERROR(AtLeast<std::int64_t>("batch-size", config.batch_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast<std::int64_t>("test-batch-size", config.test_batch_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("epochs", config.epochs, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast<std::int64_t>("max-samples", config.max_samples, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("nproc", config.nproc, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast<std::int64_t>("checkpoint-every", config.checkpoint_every, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("keep-last", config.keep_last, 0));
  PLAIT_RETURN_IF_ERROR(Between("lr", config.lr, 0, 1e30));
  PLAIT_RETURN_IF_ERROR(Between("gamma", config.gamma, 0, 1));
  PLAIT_RETURN_IF_ERROR(Between("weight-decay", config.weight_decay, 0, 1e3));
  PLAIT_RETURN_IF_ERROR(Between("dropout1", config.dropout1, 0, 1));
  PLAIT_RETURN_IF_ERROR(Between("dropout2", config.dropout2, 0, 1));
  PLAIT_RETURN_IF_ERROR(Between("timeout", config.timeout_seconds, 0.001, 1e7));
  if (config.dtype != "float32" && config.dtype != "bfloat16" && config.dtype != "float64") {
    return Invalid(absl::StrCat("--dtype=", config.dtype, ": expected float32, bfloat16 or float64"));
  }
  PLAIT_RETURN_IF_ERROR(base::Prefixed(parallel::ParseStrategy(config.strategy).status(), "--strategy"));
  PLAIT_RETURN_IF_ERROR(CheckPlaces(config));
  return MeshOf(config, ranks).status();
}

}  // namespace plait::cnn_training
