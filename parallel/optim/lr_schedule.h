// Learning rate by step: constant, StepLR, or warm-up and decay (cosine, linear, warm-up-stable-decay).
//
//   const LrSchedule schedule = LrSchedule::WarmupDecay(
//       {.lr = 6e-4, .warmup_steps = 2000, .decay_steps = 600000, .min_lr = 6e-5});
//   optimizer.set_lr(schedule.At(step));                          // step from 0
//
//   LrSchedule::StepLr({.lr = 1e-3, .step_size = 1, .gamma = 0.7}).At(epoch)   // 1e-3, 7e-4, 4.9e-4, ...
//
// A schedule is a pure function of the step, so there is no state to checkpoint. Local.
#ifndef PLAIT_PARALLEL_OPTIM_LR_SCHEDULE_H_
#define PLAIT_PARALLEL_OPTIM_LR_SCHEDULE_H_

#include <cstdint>
#include <variant>

namespace plait::parallel {

enum class LrDecay {
  kCosine,  // (1 + cos(pi x)) / 2: Loshchilov & Hutter, arXiv:1608.03983, equation 5, without restarts
  kLinear,  // 1 - x
  kSqrt,    // 1 - sqrt(x): Haegele et al., arXiv:2405.18392, for the decay after a constant rate
};

// lr (step + 1) / (warmup_steps + 1) for step < warmup_steps, as nanoGPT; lr until stable_steps; then decays from lr to
// min_lr at decay_steps, where x is the fraction of these steps done; then min_lr.
struct WarmupDecayOptions {
  double lr = 1e-3;
  std::int64_t warmup_steps = 0;  // not negative
  std::int64_t decay_steps = 1;   // at least warmup_steps and stable_steps
  double min_lr = 0;
  LrDecay decay = LrDecay::kCosine;
  std::int64_t stable_steps = 0;  // last step at rate lr; below warmup_steps: decays after the warm-up
};

// lr gamma^floor(step / step_size), bitwise as torch.optim.lr_scheduler.StepLR.
struct StepLrOptions {
  double lr = 1e-3;
  std::int64_t step_size = 1;  // positive
  double gamma = 0.1;
};

class LrSchedule {
 public:
  // The program ends if an option is out of bounds.
  static LrSchedule Constant(double lr) { return LrSchedule(lr); }
  static LrSchedule StepLr(const StepLrOptions& options);
  static LrSchedule WarmupDecay(const WarmupDecayOptions& options);

  // The rate at `step` >= 0, counted in the units of the schedule: optimizer steps or epochs, from 0.
  double At(std::int64_t step) const;

 private:
  using Rule = std::variant<double, StepLrOptions, WarmupDecayOptions>;
  explicit LrSchedule(const Rule& rule) : rule_(rule) {}
  Rule rule_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_LR_SCHEDULE_H_
