#include "parallel/optim/lr_schedule.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace plait::parallel {
namespace {

double RateAt(double lr, std::int64_t) { return lr; }

// Multiplied step by step, as PyTorch does: the same bits.
double RateAt(const StepLrOptions& options, std::int64_t step) {
  double lr = options.lr;
  for (std::int64_t i = 0; i < step / options.step_size; ++i) lr *= options.gamma;
  return lr;
}

double RateAt(const WarmupCosineOptions& options, std::int64_t step) {
  if (step < options.warmup_steps) {
    return options.lr * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps + 1);
  }
  if (step >= options.decay_steps) return options.min_lr;
  const double done = static_cast<double>(step - options.warmup_steps) /
                      static_cast<double>(options.decay_steps - options.warmup_steps);
  const double share = 0.5 * (1 + std::cos(std::numbers::pi * done));
  return options.min_lr + share * (options.lr - options.min_lr);
}

}  // namespace

LrSchedule LrSchedule::StepLr(const StepLrOptions& options) {
  PLAIT_CHECK(options.step_size > 0) << "step size " << options.step_size;
  return LrSchedule(options);
}

LrSchedule LrSchedule::WarmupCosine(const WarmupCosineOptions& options) {
  PLAIT_CHECK(options.warmup_steps >= 0 && options.decay_steps >= options.warmup_steps)
      << options.warmup_steps << " steps of warm-up, decay until " << options.decay_steps;
  return LrSchedule(options);
}

double LrSchedule::At(std::int64_t step) const {
  PLAIT_CHECK(step >= 0) << "step " << step;
  return std::visit([step](const auto& rule) { return RateAt(rule, step); }, rule_);
}

}  // namespace plait::parallel
