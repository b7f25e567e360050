#include "parallel/checkpoint/box_range.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

using models::Box;

std::int64_t Product(const Shape& shape, std::size_t from) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

// Index of `box`'s first element in `space`, which contains it, row-major.
std::int64_t FirstOf(const Box& box, const Box& space) {
  std::int64_t first = 0;
  for (std::size_t d = 0; d < box.begin.size(); ++d) {
    first = first * space.size[d] + box.begin[d] - space.begin[d];
  }
  return first;
}

// Returns the first of the dimensions along which `box` is contiguous in `space`: the trailing ones that are as large
// as those of `space`, and the one before them.
std::size_t ContiguousFrom(const Box& box, const Box& space) {
  std::size_t from = box.size.size();
  while (from > 0 && box.size[from - 1] == space.size[from - 1]) --from;
  return from > 0 ? from - 1 : 0;
}

bool IsContiguous(const Box& box, const Box& space) {
  const auto outer = static_cast<std::ptrdiff_t>(ContiguousFrom(box, space));
  return std::all_of(box.size.begin(), box.size.begin() + outer, [](std::int64_t size) { return size == 1; });
}

class Cutter {
 public:
  Cutter(const Box& box, std::vector<PartOfRange>& parts) : box_(box), parts_(parts) {}

  // Elements [begin, end), not empty, of the part of the box at `prefix`, whose first element is number
  // `first`.
  void Cut(const Shape& prefix, std::int64_t first, std::int64_t begin, std::int64_t end) {
    const std::size_t dimension = prefix.size();
    if (dimension == box_.size.size()) return Add(prefix, 1, first, first + 1);
    const std::int64_t row = Product(box_.size, dimension + 1);
    const auto cut_row = [&](std::int64_t index, std::int64_t row_begin, std::int64_t row_end) {
      Shape inner = prefix;
      inner.push_back(index);
      Cut(inner, first + index * row, row_begin, row_end);
    };
    if (begin % row != 0 && begin / row == (end - 1) / row) {
      return cut_row(begin / row, begin % row, begin % row + end - begin);
    }
    const std::int64_t whole_begin = (begin + row - 1) / row, whole_end = end / row;
    if (begin % row != 0) cut_row(begin / row, begin % row, row);
    if (whole_begin < whole_end) {
      Shape offset = prefix;
      offset.push_back(whole_begin);
      Add(offset, whole_end - whole_begin, first + whole_begin * row, first + whole_end * row);
    }
    if (end % row != 0) cut_row(end / row, 0, end % row);
  }

 private:
  // `rows` rows of the last dimension that `offset` names, whole in the dimensions after it.
  void Add(Shape offset, std::int64_t rows, std::int64_t first, std::int64_t end) {
    const std::size_t given = offset.size();
    Shape extent(given, 1);
    if (given > 0) extent.back() = rows;
    extent.insert(extent.end(), box_.size.begin() + static_cast<std::ptrdiff_t>(given), box_.size.end());
    offset.resize(box_.size.size(), 0);
    std::transform(offset.begin(), offset.end(), box_.begin.begin(), offset.begin(), std::plus<>());
    parts_.push_back({{std::move(offset), std::move(extent)}, first, end - first});
  }

  const Box& box_;
  std::vector<PartOfRange>& parts_;
};

// Advances to the next row of `box`: dimensions [0, outer) of `at` count up like the digits of a number.
bool NextRow(const Box& box, std::size_t outer, Shape& at) {
  for (std::size_t d = outer; d-- > 0;) {
    if (++at[d] < box.begin[d] + box.size[d]) return true;
    at[d] = box.begin[d];
  }
  return false;
}

absl::Status VisitRuns(const Box& shared, const Box& a, const Box& b, const RunVisitor& visit) {
  const std::size_t outer = std::max(ContiguousFrom(shared, a), ContiguousFrom(shared, b));
  const std::int64_t count = Product(shared.size, outer);
  Box row = shared;
  do {
    PLAIT_RETURN_IF_ERROR(visit(FirstOf(row, a), FirstOf(row, b), count));
  } while (NextRow(shared, outer, row.begin));
  return absl::OkStatus();
}

}  // namespace

Box WholeBox(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

std::int64_t ElementsOf(const Shape& shape) { return Product(shape, 0); }

bool IsInside(const Box& box, const Shape& shape) {
  bool inside = box.begin.size() == shape.size() && box.size.size() == shape.size();
  for (std::size_t d = 0; inside && d < shape.size(); ++d) {
    inside = box.begin[d] >= 0 && box.size[d] >= 0 && box.begin[d] <= shape[d] &&
             box.size[d] <= shape[d] - box.begin[d];
  }
  return inside;
}

std::optional<Box> Intersection(const Box& a, const Box& b) {
  Box shared = a;
  for (std::size_t d = 0; d < a.size.size(); ++d) {
    shared.begin[d] = std::max(a.begin[d], b.begin[d]);
    shared.size[d] = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]) - shared.begin[d];
    if (shared.size[d] <= 0) return std::nullopt;
  }
  return shared;
}

std::string TextOf(const Box& box) {
  std::vector<std::string> sides;
  for (std::size_t d = 0; d < std::min(box.begin.size(), box.size.size()); ++d) {
    sides.push_back(absl::StrCat(box.begin[d], ":", box.begin[d] + box.size[d]));
  }
  return absl::StrCat("[", absl::StrJoin(sides, ", "), "]");
}

BoxRange Normalized(const Shape& shape, BoxRange range) {
  Box whole = WholeBox(shape);
  if (range.box.size.empty()) return {std::move(whole), range.begin, range.end};
  if (!IsContiguous(range.box, whole)) return range;
  const std::int64_t first = range.begin == range.end ? 0 : FirstOf(range.box, whole);
  return {std::move(whole), first + range.begin, first + range.end};
}

std::vector<PartOfRange> BoxesOfRange(const BoxRange& range) {
  PLAIT_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= ElementsOf(range.box.size))
      << "[" << range.begin << ", " << range.end << ") of " << ElementsOf(range.box.size) << " elements";
  std::vector<PartOfRange> parts;
  if (range.begin < range.end) Cutter(range.box, parts).Cut({}, 0, range.begin, range.end);
  return parts;
}

absl::Status ForEachSharedRun(const BoxRange& a, const BoxRange& b, const RunVisitor& visit) {
  if (a.box == b.box) {
    const std::int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
    return begin < end ? visit(begin, begin, end - begin) : absl::OkStatus();
  }
  if (!Intersection(a.box, b.box)) return absl::OkStatus();
  const std::vector<PartOfRange> parts_of_b = BoxesOfRange(b);
  for (const PartOfRange& in_a : BoxesOfRange(a)) {
    for (const PartOfRange& in_b : parts_of_b) {
      const std::optional<Box> shared = Intersection(in_a.box, in_b.box);
      if (shared) PLAIT_RETURN_IF_ERROR(VisitRuns(*shared, a.box, b.box, visit));
    }
  }
  return absl::OkStatus();
}

}  // namespace plait::parallel
