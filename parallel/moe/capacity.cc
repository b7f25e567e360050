#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "parallel/moe/gate.h"

namespace plait::moe {

std::int64_t Capacity(const GateOptions& options, std::int64_t tokens) {
  if (options.capacity_factor == 0) return std::max<std::int64_t>(tokens, 1);
  const double all = static_cast<double>(tokens);
  // 1.1 times 70 rows must be 77, although the product in binary is larger.
  const double rows = options.k * all / options.experts * options.capacity_factor * (1 - 1e-12);
  return static_cast<std::int64_t>(std::max(1., std::min(all, std::ceil(rows))));
}

void DropOverCapacity(Routing& routing, const at::Tensor& rows_before, std::int64_t capacity) {
  const std::int64_t experts = routing.logits.size(1);
  PLAIT_CHECK(capacity > 0) << "capacity " << capacity;
  PLAIT_CHECK(rows_before.numel() == experts)
      << rows_before.numel() << " counts of " << experts << " experts";
  if (routing.experts.is_meta()) return;
  const at::Tensor kept =
      routing.experts.to(at::kCPU, at::kLong, /*non_blocking=*/false, /*copy=*/true).contiguous();
  const at::Tensor before = rows_before.to(at::kCPU, at::kLong).contiguous();
  std::int64_t* expert = kept.mutable_data_ptr<std::int64_t>();
  const std::int64_t* first = before.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> rows(first, first + experts);
  bool drops = false;
  for (std::int64_t i = 0; i < kept.numel(); ++i) {
    if (expert[i] < 0 || rows[expert[i]]++ < capacity) continue;
    expert[i] = -1;
    drops = true;
  }
  if (!drops) return;
  const at::Tensor left = kept.to(routing.experts.device());
  routing.weights = routing.weights.masked_fill(left.ne(routing.experts), 0);
  routing.experts = left;
}

}  // namespace plait::moe
