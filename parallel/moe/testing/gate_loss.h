// The global load of a batch that is split into parts, as over ranks.
#ifndef PLAIT_PARALLEL_MOE_TESTING_GATE_LOSS_H_
#define PLAIT_PARALLEL_MOE_TESTING_GATE_LOSS_H_

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include <cstdint>
#include <vector>

#include "parallel/moe/gate.h"

namespace plait::moe::testing {

// (experts) of int64, by comparing each with each.
inline at::Tensor CountRows(const at::Tensor& chosen, int experts) {
  std::vector<at::Tensor> counts;
  for (int e = 0; e < experts; ++e) counts.push_back(chosen.eq(e).sum());
  return at::stack(counts);
}

inline GlobalLoad LoadOf(const GateOptions& options, const std::vector<Routing>& parts) {
  GlobalLoad load;
  for (const Routing& part : parts) {
    const at::Tensor rows = CountRows(part.experts, options.experts), statistics = LossStatistics(part);
    load.rows_of_expert = load.rows_of_expert.defined() ? load.rows_of_expert + rows : rows;
    load.tokens += part.logits.size(0);
    if (statistics.defined()) {
      load.statistics = load.statistics.defined() ? load.statistics + statistics : statistics;
    }
  }
  return load;
}

}  // namespace plait::moe::testing

#endif  // PLAIT_PARALLEL_MOE_TESTING_GATE_LOSS_H_
