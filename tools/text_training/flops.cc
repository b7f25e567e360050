#include "tools/text_training/flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>

#include "tools/device/device.h"

namespace plait::text_training {

double MfuPercent(double flops_per_token, double tokens, double dt_seconds, double peak_flops) {
  if (!(peak_flops > 0)) return std::nan("");
  return 100 * flops_per_token * tokens / dt_seconds / peak_flops;
}

double MeasuredPeakFlops(const c10::TensorOptions& options, const std::function<double()>& clock) {
  const auto now_seconds = [&] { return clock ? clock() : device::SecondsWhenDone(options.device()); };
  const std::int64_t size = options.device().is_cpu() ? 1024 : 8192;
  constexpr double kSeconds = 0.5;
  const at::Tensor a = at::ones({size, size}, options);
  const double end = now_seconds() + kSeconds;
  double best = INFINITY, begin = 0;
  // The first product allocates memory and selects kernels.
  for (int k = 0; begin = now_seconds(), k < 2 || begin < end; ++k) {
    const at::Tensor product = at::mm(a, a);
    best = std::min(best, now_seconds() - begin);
  }
  return 2.0 * std::pow(static_cast<double>(size), 3) / best;
}

}  // namespace plait::text_training
