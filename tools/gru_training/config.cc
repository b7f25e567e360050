#include "tools/gru_training/config.h"

#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/gru_training/solver_options.h"

namespace plait::gru_training {
namespace {

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

absl::Status CheckAtLeast(const char* flag, double value, double least) {
  if (value >= least) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": must be at least ", least));
}

absl::Status CheckPositive(const char* flag, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": must be a positive number"));
}

absl::Status CheckOneOf(const char* flag, const std::string& value, const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value == choice) return absl::OkStatus();
  }
  return Invalid(absl::StrCat("--", flag, "=", value, ": expected ", absl::StrJoin(choices, " or ")));
}

absl::Status CheckNumbers(const Config& c) {
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("log-interval", c.log_interval, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("ensemble-size", c.ensemble_size, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("sequence-length", c.sequence_length, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("hidden-size", c.hidden_size, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("num-layers", c.num_layers, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("batch-size", c.batch_size, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("epochs", c.epochs, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("nproc", c.nproc, 0));
  PLAIT_RETURN_IF_ERROR(CheckPositive("tf", c.tf));
  PLAIT_RETURN_IF_ERROR(CheckPositive("lr", c.lr));
  PLAIT_RETURN_IF_ERROR(CheckPositive("timeout", c.timeout_seconds));
  if (c.percent_data > 0 && c.percent_data <= 1) return absl::OkStatus();
  return Invalid(
      absl::StrCat("--percent-data=", c.percent_data, ": a share of the data, above 0 and at most 1"));
}

absl::Status CheckWords(const Config& c) {
  if (!c.gru.empty()) PLAIT_RETURN_IF_ERROR(CheckOneOf("gru", c.gru, {"implicit", "classic"}));
  PLAIT_RETURN_IF_ERROR(CheckOneOf("dtype", c.dtype, {"float32", "float64", "bfloat16"}));
  PLAIT_RETURN_IF_ERROR(CheckOneOf("lp-coarse-step", c.lp_coarse_step, {"frozen", "one"}));
  return absl::OkStatus();
}

absl::Status CheckSolver(const Config& c) {
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-levels", c.lp_levels, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-iters", c.lp_iters, 1));
  if (c.lp_fwd_iters != -1) PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-fwd-iters", c.lp_fwd_iters, 1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-fmg-iterations", c.lp_fmg_iterations, -1));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-fwd-finerelax", c.lp_fwd_finerelax, 0));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-fwd-relax", c.lp_fwd_relax, 0));
  PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-bwd-relax", c.lp_bwd_relax, 0));
  for (const int hold : c.lp_coarse_hold) PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-coarse-hold", hold, 0));
  for (const int cfactor : c.lp_cfactor) PLAIT_RETURN_IF_ERROR(CheckAtLeast("lp-cfactor", cfactor, 2));
  return base::Prefixed(CheckFits(c), "--lp-levels, --lp-cfactor, --sequence-length");
}

absl::Status CheckCombinations(const Config& c, int ranks) {
  if (!IsLayerParallel(c, ranks) && c.implicit_serial && c.gru == "classic") {
    return Invalid(
        "--gru=classic and --implicit-serial contradict each other where one rank trains serially");
  }
  if (c.ensemble_size > 1 && !(c.checkpoint_dir + c.resume + c.history).empty()) {
    return Invalid(
        "--ensemble-size: checkpoints and histories are of a single run; leave out --checkpoint-dir, "
        "--resume and --history");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLayerParallel(const Config& config, int ranks) { return ranks > 1 || config.force_lp; }

bool TrainsImplicit(const Config& config, int ranks) {
  if (!config.gru.empty()) return config.gru == "implicit";
  return IsLayerParallel(config, ranks) || config.implicit_serial;
}

bool TestsImplicit(const Config& config, int ranks) {
  return config.implicit_serial || TrainsImplicit(config, ranks);
}

int ForwardIterations(const Config& config) {
  return config.lp_fwd_iters == -1 ? config.lp_iters : config.lp_fwd_iters;
}

absl::Status Check(const Config& config, int ranks) {
  PLAIT_RETURN_IF_ERROR(CheckNumbers(config));
  PLAIT_RETURN_IF_ERROR(CheckWords(config));
  PLAIT_RETURN_IF_ERROR(CheckSolver(config));
  return CheckCombinations(config, ranks);
}

}  // namespace plait::gru_training
