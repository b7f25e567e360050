// Flat ranges of boxes: the elements [begin, end) of part of a tensor, counted row-major within that part.
//
//   const models::Box columns{.begin = {0, 2}, .size = {3, 4}};   // of a matrix of 3 rows
//   BoxesOfRange({columns, 2, 9});   // rows 0 to 2 in part: {0, 4}+{1, 2}, {1, 2}+{1, 4}, {2, 2}+{1, 1}
//
// HDF5's virtual datasets select boxes, so this is how they show flat shards of a tensor at its own shape.
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
// Of as many dimensions as `shape`, and nowhere beyond it.
bool IsInside(const models::Box& box, const Shape& shape);
std::optional<models::Box> Intersection(const models::Box& a, const models::Box& b);
// "[0:3, 2:6]", as in Python.
std::string TextOf(const models::Box& box);

struct BoxRange {
  models::Box box;
  std::int64_t begin = 0, end = 0;  // 0 <= begin <= end <= elements of the box

  friend bool operator==(const BoxRange&, const BoxRange&) = default;
};

// The same elements as a range of the whole tensor if the box is contiguous in it (a split by rows, any split
// of a vector), unchanged otherwise. A box without dimensions stands for the whole tensor. Ranges of
// contiguous boxes thus have one form.
BoxRange Normalized(const Shape& shape, BoxRange range);

struct PartOfRange {
  models::Box box;         // within the tensor
  std::int64_t first = 0;  // number of its first element within the range's box
  std::int64_t count = 0;
};

// The range as disjoint boxes in ascending order; each is contiguous in range.box: it holds the elements
// [first, first + count), and the next box begins where it ends. At most 2 N - 1 boxes for N dimensions
// (head, body, tail; head and tail again within their row), 1 for N = 0, none if begin == end.
std::vector<PartOfRange> BoxesOfRange(const BoxRange& range);

// Elements [in_a, in_a + count) of a's box are the elements [in_b, in_b + count) of b's.
using RunVisitor = std::function<absl::Status(std::int64_t in_a, std::int64_t in_b, std::int64_t count)>;

// Visits the elements that two ranges of one tensor share, as runs that are contiguous in both boxes. Stops
// at the first error and returns it.
absl::Status ForEachSharedRun(const BoxRange& a, const BoxRange& b, const RunVisitor& visit);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_BOX_RANGE_H_
