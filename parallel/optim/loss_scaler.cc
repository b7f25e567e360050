#include "parallel/optim/loss_scaler.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::parallel {

LossScaler::LossScaler(const LossScalerOptions& options)
    : options_(options), state_{.scale = options.enabled ? options.initial_scale : 1} {
  PLAIT_CHECK(options.initial_scale > 0) << "scale " << options.initial_scale;
  PLAIT_CHECK(options.growth > 1) << "growth " << options.growth;
  PLAIT_CHECK(options.backoff > 0 && options.backoff < 1) << "backoff " << options.backoff;
  PLAIT_CHECK(options.interval > 0) << "interval " << options.interval;
}

void LossScaler::Update(bool overflow) {
  if (!options_.enabled) return;
  if (overflow) {
    state_ = {.scale = state_.scale * options_.backoff, .good_steps = 0};
    return;
  }
  if (++state_.good_steps < options_.interval) return;
  state_.good_steps = 0;
  // The loss is multiplied in float32.
  const double grown = state_.scale * options_.growth;
  if (grown <= std::numeric_limits<float>::max()) state_.scale = grown;
}

absl::Status LossScaler::Restore(const LossScalerState& state) {
  if (!(state.scale > 0) || !std::isfinite(state.scale)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss scale ", state.scale, ": expected a positive number; the checkpoint is damaged"));
  }
  if (state.good_steps < 0 || state.good_steps >= options_.interval) {
    return absl::InvalidArgumentError(absl::StrCat("loss scale: ", state.good_steps,
                                                   " steps since its last change, expected fewer than ",
                                                   options_.interval, ", its interval"));
  }
  if (options_.enabled) state_ = state;
  return absl::OkStatus();
}

}  // namespace plait::parallel
