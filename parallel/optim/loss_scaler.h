// A loss scale that adapts: float16 gradients neither vanish nor overflow.
//
//   LossScaler scaler({});                                       // 65536, as torch.amp.GradScaler
//   dp->Backward(loss * scaler.scale());
//   const StepResult result = optimizer.Step({.clip_norm = 1, .loss_scale = scaler.scale()});
//   scaler.Update(/*overflow=*/result.skipped);
//   checkpoint.Save("loss_scale", scaler.state().scale, scaler.state().good_steps);
//
// An overflow multiplies the scale by `backoff` and the step is left out; `interval` steps in a row without
// one multiply it by `growth`. Micikevicius et al., "Mixed precision training", arXiv:1710.03740, section
// 3.2. Whether a step overflowed is the same on all ranks (the gradient norm is global), so the scale is too,
// without a message. Local, deterministic.
#ifndef PLAIT_PARALLEL_OPTIM_LOSS_SCALER_H_
#define PLAIT_PARALLEL_OPTIM_LOSS_SCALER_H_

#include <cstdint>

#include "absl/status/status.h"

namespace plait::parallel {

struct LossScalerOptions {
  double initial_scale = 65536;  // positive
  double growth = 2;             // above 1
  double backoff = 0.5;          // between 0 and 1
  std::int64_t interval = 2000;  // steps, positive
  bool enabled = true;           // false: the scale is 1 and stays so
};

// All that a checkpoint must keep.
struct LossScalerState {
  double scale = 1;
  std::int64_t good_steps = 0;  // since the last change
  friend bool operator==(const LossScalerState&, const LossScalerState&) = default;
};

class LossScaler {
 public:
  // Options outside their bounds are a programming error.
  explicit LossScaler(const LossScalerOptions& options);

  double scale() const { return state_.scale; }
  // Behind every step. The scale stays where growth would make it infinite as a float32.
  void Update(bool overflow);

  const LossScalerState& state() const { return state_; }
  // InvalidArgument for a scale that is not positive and finite, or a count outside the interval.
  absl::Status Restore(const LossScalerState& state);

 private:
  LossScalerOptions options_;
  LossScalerState state_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_LOSS_SCALER_H_
