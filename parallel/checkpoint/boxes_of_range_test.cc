// Boxes against a walk over every element of the array.
#include "parallel/checkpoint/boxes_of_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/seed.h"

namespace plait::parallel {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Row-major numbers of the elements of a box, found coordinate by coordinate.
std::vector<std::int64_t> ElementsOf(const Shape& shape, const Box& box) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t element = 0; element < Elements(shape); ++element) {
    std::int64_t left = element;
    bool inside = true;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t coordinate = left % shape[d];
      left /= shape[d];
      inside = inside && coordinate >= box.offset[d] && coordinate < box.offset[d] + box.extent[d];
    }
    if (inside) numbers.push_back(element);
  }
  return numbers;
}

void ExpectBoxes(const Shape& shape, std::int64_t begin, std::int64_t end) {
  const std::vector<Box> boxes = BoxesOfRange(shape, begin, end);
  const std::string where =
      ::testing::PrintToString(shape) + " [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  EXPECT_LE(boxes.size(), std::max<std::size_t>(1, 2 * shape.size() - (shape.empty() ? 0 : 1))) << where;
  std::int64_t next = begin;
  for (const Box& box : boxes) {
    ASSERT_EQ(box.offset.size(), shape.size()) << where;
    ASSERT_EQ(box.extent.size(), shape.size()) << where;
    EXPECT_EQ(box.first, next) << where;
    EXPECT_GT(box.count, 0) << where;
    std::vector<std::int64_t> expected(box.count);
    std::iota(expected.begin(), expected.end(), box.first);
    ASSERT_EQ(ElementsOf(shape, box), expected) << where;
    next += box.count;
  }
  EXPECT_EQ(next, end) << where;
}

TEST(BoxesOfRange, EveryRangeOfSmallArrays) {
  for (const Shape& shape : {Shape{},
                             {1},
                             {7},
                             {3, 4},
                             {1, 5},
                             {5, 1},
                             {2, 3, 4},
                             {3, 1, 2},
                             {1, 1, 1},
                             {2, 2, 2, 2},
                             {3, 2, 1, 3}}) {
    for (std::int64_t begin = 0; begin <= Elements(shape); ++begin) {
      for (std::int64_t end = begin; end <= Elements(shape); ++end) ExpectBoxes(shape, begin, end);
    }
  }
}

TEST(BoxesOfRange, RandomRangesOfRandomArrays) {
  base::RandomStream draw(base::DeriveSeed(5, "boxes"));
  for (int round = 0; round < 300; ++round) {
    Shape shape(1 + draw.Below(5));
    for (std::int64_t& size : shape) size = 1 + static_cast<std::int64_t>(draw.Below(5));
    std::int64_t ends[2];
    for (std::int64_t& end : ends) end = static_cast<std::int64_t>(draw.Below(Elements(shape) + 1));
    ExpectBoxes(shape, std::min(ends[0], ends[1]), std::max(ends[0], ends[1]));
  }
}

TEST(BoxesOfRange, WholeArraysAndRowsAreOneBox) {
  EXPECT_EQ(BoxesOfRange({4, 5, 6}, 0, 120).size(), 1u);
  EXPECT_EQ(BoxesOfRange({4, 5, 6}, 30, 90).size(), 1u);
  EXPECT_EQ(BoxesOfRange({4, 5, 6}, 36, 48).size(), 1u);
  EXPECT_EQ(BoxesOfRange({4, 5, 6}, 1, 119).size(), 5u) << "2 N - 1, and no fewer will do";
  EXPECT_TRUE(BoxesOfRange({0, 3}, 0, 0).empty());
}

TEST(BoxesOfRangeDeathTest, RangesOutsideTheArray) {
  EXPECT_DEATH(BoxesOfRange({2, 3}, 4, 7), "of 6 elements");
}

}  // namespace
}  // namespace plait::parallel
