// Flat ranges of boxes: the elements [begin, end) of part of a tensor, counted row-major within that part.
//
//   const models::Box columns{.begin = {0, 2}, .size = {3, 4}};   // of a matrix of 3 rows
//   BoxesOfRange({columns, 2, 9});   // begin + size: {0, 4} + {1, 2}, {1, 2} + {1, 4}, {2, 2} + {1, 1}
//
// HDF5's virtual datasets select boxes; this is how they present flat shards of a tensor at its own shape.
#ifndef PLAIT_PARALLEL_CHECKPOINT_BOX_RANGE_H_
#define PLAIT_PARALLEL_CHECKPOINT_BOX_RANGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/placement.h"

namespace plait::parallel {

using Shape = std::vector<std::int64_t>;

models::Box WholeBox(const Shape& shape);
std::int64_t ElementsOf(const Shape& shape);
// True if the box has as many dimensions as `shape` and lies inside it.
bool IsInside(const models::Box& box, const Shape& shape);
// nullopt if no element is in both.
std::optional<models::Box> Intersection(const models::Box& a, const models::Box& b);
// "[0:3, 2:6]", as in Python.
std::string TextOf(const models::Box& box);

struct BoxRange {
  models::Box box;
  std::int64_t begin = 0, end = 0;  // 0 <= begin <= end <= elements of the box

  friend bool operator==(const BoxRange&, const BoxRange&) = default;
};

// If the box is contiguous in the tensor (a split by rows, any split of a vector), returns the same elements as a range
// of the whole tensor; otherwise returns `range` unchanged. A box without dimensions means the whole tensor. Ranges of
// contiguous boxes thus have a single representation.
BoxRange Normalized(const Shape& shape, BoxRange range);

struct PartOfRange {
  models::Box box;         // within the tensor
  std::int64_t first = 0;  // index of its first element within the range's box
  std::int64_t count = 0;
};

// The range as disjoint boxes in ascending order. Each holds the elements [first, first + count) of range.box, and the
// next box begins where it ends. At most 2 N - 1 boxes for N dimensions (head, body, tail; head and tail again within
// their row), 1 for N = 0, none if begin == end.
std::vector<PartOfRange> BoxesOfRange(const BoxRange& range);

// Elements [in_a, in_a + count) of a's box are the elements [in_b, in_b + count) of b's.
using RunVisitor = std::function<absl::Status(std::int64_t in_a, std::int64_t in_b, std::int64_t count)>;

// Visits the elements that two ranges of the same tensor have in common, as runs that are contiguous in both boxes.
// Stops at the first error and returns it.
absl::Status ForEachSharedRun(const BoxRange& a, const BoxRange& b, const RunVisitor& visit);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_BOX_RANGE_H_
