// A flat range of a row-major array as boxes: how HDF5's virtual datasets, which select boxes, show the flat
// shards of a tensor at its own shape.
//
//   BoxesOfRange({3, 4}, 2, 9);    // elements 2..8: {0, 2}+{1, 2}, {1, 0}+{1, 4}, {2, 0}+{1, 1}
//
// The boxes are disjoint, in ascending order, and each is itself contiguous in the array: box i holds the
// elements [first, first + count) in row-major order, and box i + 1 begins where it ends. At most 2 N - 1
// boxes for N dimensions (head, body, tail; head and tail again within their row), 1 for N = 0.
#ifndef PLAIT_PARALLEL_CHECKPOINT_BOXES_OF_RANGE_H_
#define PLAIT_PARALLEL_CHECKPOINT_BOXES_OF_RANGE_H_

#include <cstdint>
#include <vector>

namespace plait::parallel {

struct Box {
  std::vector<std::int64_t> offset, extent;  // one number per dimension
  std::int64_t first = 0;                    // of its elements, counted row-major in the whole array
  std::int64_t count = 0;
};

// Elements [begin, end) of an array of `shape`; none if begin == end. 0 <= begin <= end <= number of
// elements.
std::vector<Box> BoxesOfRange(const std::vector<std::int64_t>& shape, std::int64_t begin, std::int64_t end);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_BOXES_OF_RANGE_H_
