// Whether boxes of a tensor hold each of its elements exactly once.
#ifndef PLAIT_PARALLEL_CHECKPOINT_COVERAGE_H_
#define PLAIT_PARALLEL_CHECKPOINT_COVERAGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "models/placement.h"
#include "parallel/checkpoint/box_range.h"

namespace plait::parallel {

struct OwnedBox {
  models::Box box;
  std::int64_t owner = 0;
};

// Elements that nobody owns (no owners), or that two boxes contain (their owners).
struct CoverageFault {
  models::Box box;
  std::vector<std::int64_t> owners;
};

// Boxes lie inside `shape` and are not empty. Sweeps along each dimension in turn, so that the time grows
// with the number of boxes where they form a grid, not with its square.
std::optional<CoverageFault> FindCoverageFault(const Shape& shape, const std::vector<OwnedBox>& boxes);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_COVERAGE_H_
