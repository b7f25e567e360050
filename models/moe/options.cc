#include "models/moe/options.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::moe {

// Planner and chunks are not part of the model.
bool operator==(const MoeOptions& a, const MoeOptions& b) {
  const auto of = [](const MoeOptions& o) {
    const GateOptions& g = o.gate;
    return std::tuple(g.kind, g.experts, g.k, g.normalizes, g.sigmoid, g.balance_weight, g.z_weight,
                      g.bias_rate, g.jitter, g.capacity_factor, o.hidden, o.activation, o.gated, o.bias,
                      o.shared_hidden);
  };
  return of(a) == of(b);
}

absl::Status Validate(const MoeOptions& options) {
  if (!options.used()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(Validate(options.gate));
  PLAIT_RETURN_IF_ERROR(Validate(options.planner));
  if (options.hidden < 1 || options.shared_hidden < 0 || options.chunks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("experts ", options.hidden, " wide, a shared one ", options.shared_hidden, " wide, ",
                     options.chunks, " chunks; expected positive numbers, and 0 for no shared expert"));
  }
  return absl::OkStatus();
}

std::int64_t ParameterCount(const MoeOptions& options, std::int64_t width, std::int64_t experts) {
  const std::int64_t hidden = options.hidden, ins = options.gated ? 2 : 1, bias = options.bias ? 1 : 0;
  const std::int64_t expert = (ins + 1) * hidden * width + bias * (ins * hidden + width);
  const std::int64_t matrices = options.gate.kind == GateKind::kNoisyTopK ? 2 : 1;
  const std::int64_t router = matrices * options.gate.experts * width;
  const std::int64_t shared = options.shared_hidden > 0
                                  ? 2 * options.shared_hidden * width + bias * (options.shared_hidden + width)
                                  : 0;
  return experts * expert + router + shared;
}

}  // namespace plait::moe
