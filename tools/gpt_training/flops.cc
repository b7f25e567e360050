#include "tools/gpt_training/flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace plait::gpt_training {

double MfuPercent(double flops_per_token, double tokens, double dt_seconds, double peak_flops) {
  if (!(peak_flops > 0)) return std::nan("");
  return 100 * flops_per_token * tokens / dt_seconds / peak_flops;
}

double MeasuredPeakFlops(c10::ScalarType type) {
  constexpr std::int64_t kSize = 1024;
  constexpr double kSeconds = 0.5;
  const at::Tensor a = at::ones({kSize, kSize}, type);
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Clock::time_point start = Clock::now();
  double best = INFINITY;
  // The first product makes room and chooses kernels.
  for (int k = 0; k < 2 || seconds_since(start) < kSeconds; ++k) {
    const Clock::time_point begin = Clock::now();
    const at::Tensor product = at::mm(a, a);
    best = std::min(best, seconds_since(begin));
  }
  return 2.0 * kSize * kSize * kSize / best;
}

}  // namespace plait::gpt_training
