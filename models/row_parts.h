// What cross entropies of whole and of split vocabularies share. Private to models/cross_entropy.h and
// parallel/tensor.
#ifndef PLAIT_MODELS_ROW_PARTS_H_
#define PLAIT_MODELS_ROW_PARTS_H_

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "models/block_model.h"

namespace plait::models {

inline at::ScalarType LossType(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Calls part(first row, rows) for all rows of `logits`: as many at a time as may be converted to `type`
// together, 16 MB of float32; all at once where none is converted, also if there are none.
template <typename Part>
void ForRowParts(const at::Tensor& logits, at::ScalarType type, const Part& part) {
  constexpr std::int64_t kPartElements = 4 << 20;
  const std::int64_t rows = logits.size(0);
  const bool converted = logits.scalar_type() != type;
  const std::int64_t limit = converted ? std::max<std::int64_t>(1, kPartElements / logits.size(1)) : rows;
  std::int64_t first = 0;
  do {
    part(first, std::min(limit, rows - first));
    first += limit;
  } while (first < rows);
}

// sum(logits, targets) of the rows whose target is not negative, and their number; `valid` as in
// CrossEntropySum.
LossSum OverValidRows(const at::Tensor& logits, const at::Tensor& targets, std::int64_t valid,
                      const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& sum);

}  // namespace plait::models

#endif  // PLAIT_MODELS_ROW_PARTS_H_
