#include "parallel/checkpoint/coverage.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace plait::parallel {
namespace {

using Boxes = std::vector<const OwnedBox*>;

std::int64_t EndOf(const OwnedBox& owned, std::size_t dimension) {
  return owned.box.begin[dimension] + owned.box.size[dimension];
}

class Sweep {
 public:
  explicit Sweep(const Shape& shape) : shape_(shape), slab_(WholeBox(shape)) {}

  // `boxes` are those that span the slab in the dimensions before `dimension`; in the others the slab spans the whole
  // shape.
  std::optional<CoverageFault> Find(std::size_t dimension, Boxes boxes) {
    if (boxes.empty()) return CoverageFault{slab_, {}};
    if (dimension == shape_.size()) {
      if (boxes.size() == 1) return std::nullopt;
      return CoverageFault{*Intersection(boxes[0]->box, boxes[1]->box), {boxes[0]->owner, boxes[1]->owner}};
    }
    std::sort(boxes.begin(), boxes.end(), [dimension](const OwnedBox* a, const OwnedBox* b) {
      return std::tie(a->box.begin[dimension], a) < std::tie(b->box.begin[dimension], b);
    });
    std::optional<CoverageFault> fault;
    Boxes here;
    auto next = boxes.begin();
    for (std::int64_t from = 0, until = 0; from < shape_[dimension] && !fault; from = until) {
      std::erase_if(here, [&](const OwnedBox* owned) { return EndOf(*owned, dimension) == from; });
      while (next != boxes.end() && (*next)->box.begin[dimension] == from) here.push_back(*next++);
      until = next == boxes.end() ? shape_[dimension] : (*next)->box.begin[dimension];
      for (const OwnedBox* owned : here) until = std::min(until, EndOf(*owned, dimension));
      slab_.begin[dimension] = from;
      slab_.size[dimension] = until - from;
      fault = Find(dimension + 1, here);
    }
    slab_.begin[dimension] = 0;
    slab_.size[dimension] = shape_[dimension];
    return fault;
  }

 private:
  const Shape& shape_;
  models::Box slab_;  // that is being looked at
};

}  // namespace

std::optional<CoverageFault> FindCoverageFault(const Shape& shape, const std::vector<OwnedBox>& boxes) {
  if (ElementsOf(shape) == 0) return std::nullopt;
  Boxes all;
  for (const OwnedBox& owned : boxes) all.push_back(&owned);
  return Sweep(shape).Find(0, std::move(all));
}

}  // namespace plait::parallel
