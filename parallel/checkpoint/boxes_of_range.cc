#include "parallel/checkpoint/boxes_of_range.h"

#include <cstddef>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace plait::parallel {
namespace {

using Numbers = std::vector<std::int64_t>;

std::int64_t Product(const Numbers& shape, std::size_t from) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

class Cutter {
 public:
  Cutter(const Numbers& shape, std::vector<Box>& boxes) : shape_(shape), boxes_(boxes) {}

  // Elements [begin, end), not empty, of the subarray at `prefix`, whose first element is number `first`.
  void Cut(const Numbers& prefix, std::int64_t first, std::int64_t begin, std::int64_t end) {
    const std::size_t dimension = prefix.size();
    if (dimension == shape_.size()) return Add(prefix, 1, first, first + 1);
    const std::int64_t row = Product(shape_, dimension + 1);
    const auto cut_row = [&](std::int64_t index, std::int64_t row_begin, std::int64_t row_end) {
      Numbers inner = prefix;
      inner.push_back(index);
      Cut(inner, first + index * row, row_begin, row_end);
    };
    if (begin % row != 0 && begin / row == (end - 1) / row) {
      return cut_row(begin / row, begin % row, begin % row + end - begin);
    }
    const std::int64_t whole_begin = (begin + row - 1) / row, whole_end = end / row;
    if (begin % row != 0) cut_row(begin / row, begin % row, row);
    if (whole_begin < whole_end) {
      Numbers offset = prefix;
      offset.push_back(whole_begin);
      Add(offset, whole_end - whole_begin, first + whole_begin * row, first + whole_end * row);
    }
    if (end % row != 0) cut_row(end / row, 0, end % row);
  }

 private:
  // `rows` rows of the last dimension that `offset` names, whole in the dimensions after it.
  void Add(Numbers offset, std::int64_t rows, std::int64_t first, std::int64_t end) {
    const std::size_t given = offset.size();
    Numbers extent(given, 1);
    if (given > 0) extent.back() = rows;
    extent.insert(extent.end(), shape_.begin() + static_cast<std::ptrdiff_t>(given), shape_.end());
    offset.resize(shape_.size(), 0);
    boxes_.push_back({std::move(offset), std::move(extent), first, end - first});
  }

  const Numbers& shape_;
  std::vector<Box>& boxes_;
};

}  // namespace

std::vector<Box> BoxesOfRange(const Numbers& shape, std::int64_t begin, std::int64_t end) {
  PLAIT_CHECK(0 <= begin && begin <= end && end <= Product(shape, 0))
      << "[" << begin << ", " << end << ") of " << Product(shape, 0) << " elements";
  std::vector<Box> boxes;
  if (begin < end) Cutter(shape, boxes).Cut({}, 0, begin, end);
  return boxes;
}

}  // namespace plait::parallel
