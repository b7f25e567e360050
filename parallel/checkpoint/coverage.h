// Checks that boxes cover each element of a tensor exactly once.
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

// Elements that are in no box (`owners` is empty), or in two (`owners` are theirs).
struct CoverageFault {
  models::Box box;
  std::vector<std::int64_t> owners;
};

// Returns a fault, or nullopt if there is none. Boxes must lie inside `shape` and not be empty. Sweeps along one
// dimension after the other: for a grid of boxes the time is linear in their number, not quadratic.
std::optional<CoverageFault> FindCoverageFault(const Shape& shape, const std::vector<OwnedBox>& boxes);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_COVERAGE_H_
