#include "parallel/moe/gate_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::moe {
namespace {

constexpr std::array<std::pair<GateKind, const char*>, 5> kNames = {{{GateKind::kTopK, "top-k"},
                                                                     {GateKind::kNoisyTopK, "noisy-top-k"},
                                                                     {GateKind::kSwitch, "switch"},
                                                                     {GateKind::kGShard, "gshard"},
                                                                     {GateKind::kBias, "bias"}}};

absl::Status CheckK(const GateOptions& options) {
  const char* name = Name(options.kind);
  if (options.experts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("gate ", name, ": ", options.experts, " experts; expected at least 1"));
  }
  if (options.kind == GateKind::kSwitch && options.k != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("gate switch: k is ", options.k, "; expected 1 (gate top-k routes to more)"));
  }
  if (options.kind == GateKind::kGShard && options.k != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("gate gshard: k is ", options.k, "; expected 2 (gate top-k routes to others)"));
  }
  if (options.k < 1 || options.k > options.experts) {
    return absl::InvalidArgumentError(absl::StrCat("gate ", name, ": k is ", options.k, "; expected 1 to ",
                                                   options.experts, ", the number of experts"));
  }
  return absl::OkStatus();
}

absl::Status CheckNotNegative(const GateOptions& options, const char* what, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("gate ", Name(options.kind), ": ", what, " is ", value,
                                                 "; expected a finite number that is not negative"));
}

}  // namespace

absl::Status Validate(const GateOptions& options) {
  PLAIT_RETURN_IF_ERROR(CheckK(options));
  PLAIT_RETURN_IF_ERROR(CheckNotNegative(options, "the balance loss's weight", options.balance_weight));
  PLAIT_RETURN_IF_ERROR(CheckNotNegative(options, "the z loss's weight", options.z_weight));
  PLAIT_RETURN_IF_ERROR(CheckNotNegative(options, "the bias's rate", options.bias_rate));
  PLAIT_RETURN_IF_ERROR(CheckNotNegative(options, "the capacity factor", options.capacity_factor));
  if (!(options.jitter >= 0 && options.jitter < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("gate ", Name(options.kind), ": jitter is ",
                                                   options.jitter, "; expected at least 0 and less than 1"));
  }
  if (options.jitter > 0 && options.kind != GateKind::kSwitch) {
    return absl::InvalidArgumentError(absl::StrCat("gate ", Name(options.kind), ": jitter is ",
                                                   options.jitter, "; only gate switch has it"));
  }
  if (options.sigmoid && options.kind != GateKind::kBias) {
    return absl::InvalidArgumentError(
        absl::StrCat("gate ", Name(options.kind), ": sigmoid scores; only gate bias has them"));
  }
  return absl::OkStatus();
}

const char* Name(GateKind kind) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == kind; })
      ->second;
}

absl::StatusOr<GateKind> ParseGateKind(const std::string& text) {
  std::string listed;
  for (const auto& [kind, name] : kNames) {
    if (text == name) return kind;
    absl::StrAppend(&listed, listed.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(absl::StrCat("gate \"", text, "\"; expected one of ", listed));
}

}  // namespace plait::moe
