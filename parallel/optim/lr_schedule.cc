#include "parallel/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace plait::parallel {
namespace {

double RateAt(double lr, std::int64_t) { return lr; }

// Multiplied step by step, for the same bits as PyTorch.
double RateAt(const StepLrOptions& options, std::int64_t step) {
  double lr = options.lr;
  for (std::int64_t i = 0; i < step / options.step_size; ++i) lr *= options.gamma;
  return lr;
}

// The fraction of lr - min_lr that remains.
double Remaining(LrDecay decay, double done) {
  switch (decay) {
    case LrDecay::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * done));
    case LrDecay::kLinear:
      return 1 - done;
    case LrDecay::kSqrt:
      return 1 - std::sqrt(done);
  }
  return 0;
}

double RateAt(const WarmupDecayOptions& options, std::int64_t step) {
  if (step < options.warmup_steps) {
    return options.lr * (static_cast<double>(step) + 1) / (static_cast<double>(options.warmup_steps) + 1);
  }
  if (step >= options.decay_steps) return options.min_lr;
  const std::int64_t begin = std::max(options.warmup_steps, options.stable_steps);
  if (step < begin) return options.lr;
  const double done = static_cast<double>(step - begin) / static_cast<double>(options.decay_steps - begin);
  return options.min_lr + Remaining(options.decay, done) * (options.lr - options.min_lr);
}

}  // namespace

LrSchedule LrSchedule::StepLr(const StepLrOptions& options) {
  PLAIT_CHECK(options.step_size > 0) << "step size " << options.step_size;
  return LrSchedule(options);
}

LrSchedule LrSchedule::WarmupDecay(const WarmupDecayOptions& options) {
  PLAIT_CHECK(options.warmup_steps >= 0 && options.decay_steps >= options.warmup_steps &&
              options.decay_steps >= options.stable_steps)
      << options.warmup_steps << " steps of warm-up, stable until " << options.stable_steps
      << ", decay until " << options.decay_steps;
  return LrSchedule(options);
}

double LrSchedule::At(std::int64_t step) const {
  PLAIT_CHECK(step >= 0) << "step " << step;
  return std::visit([step](const auto& rule) { return RateAt(rule, step); }, rule_);
}

}  // namespace plait::parallel
