// Shared by the cross entropies of whole and split vocabularies. Private to models/cross_entropy.h and
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

// Calls part(first row, number of rows) for consecutive parts of `logits`. Rows that must be converted to `type` come
// in parts of about 4 Mi elements (16 MiB of float32), on a GPU, which needs many rows at a time, 64 Mi; else there is one
// part. Called once if there are no rows.
template <typename Part>
void ForRowParts(const at::Tensor& logits, at::ScalarType type, const Part& part) {
  const std::int64_t elements = logits.is_cpu() || logits.is_meta() ? 4 << 20 : 64 << 20;
  const std::int64_t rows = logits.size(0);
  const bool converted = logits.scalar_type() != type;
  const std::int64_t limit = converted ? std::max<std::int64_t>(1, elements / logits.size(1)) : rows;
  std::int64_t first = 0;
  do {
    part(first, std::min(limit, rows - first));
    first += limit;
  } while (first < rows);
}

// Returns sum(logits, targets) over the rows whose target is not negative, and their number; `valid` as in
// CrossEntropySum. Aborts if `valid` is not their number.
LossSum OverValidRows(const at::Tensor& logits, const at::Tensor& targets, std::int64_t valid,
                      const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& sum);

}  // namespace plait::models

#endif  // PLAIT_MODELS_ROW_PARTS_H_
