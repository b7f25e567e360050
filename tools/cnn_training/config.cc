#include "tools/cnn_training/config.h"

#include "absl/strings/str_cat.h"
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

absl::Status CheckPlaces(const Config& config) {
  if (!config.checkpoint_dir.empty() ||
      (config.checkpoint_every == 0 && config.keep_last == Config().keep_last)) {
    return absl::OkStatus();
  }
  return Invalid("--checkpoint-every and --keep-last are of no use without --checkpoint-dir; name a folder");
}

}  // namespace

absl::StatusOr<MeshShape> MeshOf(const Config& config, int ranks) {
  return training_program::MeshOf(config.mesh, StrategyOf(config), ranks);
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
  PLAIT_RETURN_IF_ERROR(training_program::CheckOffload(config.offload, StrategyOf(config)));
  return MeshOf(config, ranks).status();
}

}  // namespace plait::cnn_training
