// Dynamic loss scaling, so that float16 gradients neither underflow nor overflow.
//
//   LossScaler scaler({});                                       // 65536, as torch.amp.GradScaler
//   dp->Backward(loss * scaler.scale());
//   const StepResult result = optimizer.Step({.clip_norm = 1, .loss_scale = scaler.scale()});
//   scaler.Update(/*overflow=*/result.skipped);
//   // a checkpoint keeps scaler.state().scale and scaler.state().good_steps; see Restore
//
// After an overflow the step is skipped and the scale multiplied by `backoff`; after `interval` steps in a row without
// one it is multiplied by `growth`. Micikevicius et al., "Mixed precision training", arXiv:1710.03740, section 3.2.
// Whether a step overflowed is the same on all ranks (the gradient norm is global), and so is the scale, without
// communication. Local, deterministic.
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
  double least_scale = 0x1p-24;  // float16's largest number is below 2^16
  bool enabled = true;           // false: the scale is always 1
};

// The state to checkpoint.
struct LossScalerState {
  double scale = 1;
  std::int64_t good_steps = 0;  // since the last change
  friend bool operator==(const LossScalerState&, const LossScalerState&) = default;
};

class LossScaler {
 public:
  // The program ends if an option is out of bounds.
  explicit LossScaler(const LossScalerOptions& options);

  double scale() const { return state_.scale; }
  // Whether a smaller scale may help against an overflow. If not, gradients are not finite at any scale, and training
  // must end: every further step would be skipped.
  bool can_back_off() const { return options_.enabled && state_.scale > options_.least_scale; }
  // Call after every step. The scale does not grow beyond the range of float32.
  void Update(bool overflow);

  const LossScalerState& state() const { return state_; }
  // INVALID_ARGUMENT if the scale is not positive and finite, or the count not below `interval`. A disabled scaler
  // checks the state and ignores it.
  absl::Status Restore(const LossScalerState& state);

 private:
  LossScalerOptions options_;
  LossScalerState state_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_LOSS_SCALER_H_
