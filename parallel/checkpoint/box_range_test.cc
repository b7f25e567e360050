// Ranges of boxes against a walk over every element of the tensor.
#include "parallel/checkpoint/box_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/seed.h"

namespace plait::parallel {
namespace {

using models::Box;
using Numbers = std::vector<std::int64_t>;

// Row-major numbers in the tensor of the elements of a box, found coordinate by coordinate.
Numbers ElementsIn(const Shape& shape, const Box& box) {
  Numbers numbers;
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  for (std::int64_t element = 0; element < elements; ++element) {
    std::int64_t left = element;
    bool inside = true;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t coordinate = left % shape[d];
      left /= shape[d];
      inside = inside && coordinate >= box.begin[d] && coordinate < box.begin[d] + box.size[d];
    }
    if (inside) numbers.push_back(element);
  }
  return numbers;
}

Numbers ElementsIn(const Shape& shape, const BoxRange& range) {
  const Numbers all = ElementsIn(shape, range.box);
  return {all.begin() + range.begin, all.begin() + range.end};
}

std::string TextOf(const Shape& shape, const BoxRange& range) {
  return ::testing::PrintToString(shape) + " " + parallel::TextOf(range.box) + " [" +
         std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

void ExpectParts(const Shape& shape, const BoxRange& range) {
  const std::vector<PartOfRange> parts = BoxesOfRange(range);
  const std::string where = TextOf(shape, range);
  EXPECT_LE(parts.size(), std::max<std::size_t>(1, 2 * shape.size() - (shape.empty() ? 0 : 1))) << where;
  const Numbers all = ElementsIn(shape, range.box);
  std::int64_t next = range.begin;
  for (const PartOfRange& part : parts) {
    ASSERT_TRUE(IsInside(part.box, shape)) << where;
    EXPECT_EQ(part.first, next) << where;
    EXPECT_GT(part.count, 0) << where;
    const Numbers expected(all.begin() + part.first, all.begin() + part.first + part.count);
    ASSERT_EQ(ElementsIn(shape, part.box), expected) << where;
    next += part.count;
  }
  EXPECT_EQ(next, range.end) << where;
}

BoxRange RangeOfWhole(const Shape& shape, std::int64_t begin, std::int64_t end) {
  return {WholeBox(shape), begin, end};
}

Shape RandomShape(base::RandomStream& draw) {
  Shape shape(draw.Below(5));
  for (std::int64_t& size : shape) size = 1 + static_cast<std::int64_t>(draw.Below(5));
  return shape;
}

BoxRange RandomRange(const Shape& shape, base::RandomStream& draw) {
  BoxRange range{WholeBox(shape)};
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (draw.Below(3) > 0) {
      range.box.begin[d] = static_cast<std::int64_t>(draw.Below(shape[d]));
      range.box.size[d] = 1 + static_cast<std::int64_t>(draw.Below(shape[d] - range.box.begin[d]));
    }
    elements *= range.box.size[d];
  }
  range.begin = static_cast<std::int64_t>(draw.Below(elements + 1));
  range.end = static_cast<std::int64_t>(draw.Below(elements + 1));
  if (range.begin > range.end) std::swap(range.begin, range.end);
  return range;
}

TEST(BoxesOfRange, EveryRangeOfSmallTensors) {
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
    const std::int64_t elements = ElementsOf(shape);
    for (std::int64_t begin = 0; begin <= elements; ++begin) {
      for (std::int64_t end = begin; end <= elements; ++end)
        ExpectParts(shape, RangeOfWhole(shape, begin, end));
    }
  }
}

TEST(BoxesOfRange, RandomRangesOfRandomBoxes) {
  base::RandomStream draw(base::DeriveSeed(5, "boxes"));
  for (int round = 0; round < 1000; ++round) {
    const Shape shape = RandomShape(draw);
    ExpectParts(shape, RandomRange(shape, draw));
  }
}

TEST(BoxesOfRange, WholeTensorsAndRowsAreOneBox) {
  const Shape shape{4, 5, 6};
  EXPECT_EQ(BoxesOfRange(RangeOfWhole(shape, 0, 120)).size(), 1u);
  EXPECT_EQ(BoxesOfRange(RangeOfWhole(shape, 30, 90)).size(), 1u);
  EXPECT_EQ(BoxesOfRange(RangeOfWhole(shape, 36, 48)).size(), 1u);
  EXPECT_EQ(BoxesOfRange(RangeOfWhole(shape, 1, 119)).size(), 5u) << "2 N - 1, and no fewer will do";
  EXPECT_TRUE(BoxesOfRange(RangeOfWhole({0, 3}, 0, 0)).empty());
}

TEST(BoxesOfRangeDeathTest, RangesOutsideTheBox) {
  EXPECT_DEATH(BoxesOfRange({{{5, 5}, {2, 3}}, 4, 7}), "of 6 elements");
}

TEST(Normalized, TheSameElementsAndOneFormOfContiguousBoxes) {
  base::RandomStream draw(base::DeriveSeed(6, "normalized"));
  int changed = 0;
  for (int round = 0; round < 2000; ++round) {
    const Shape shape = RandomShape(draw);
    const BoxRange range = RandomRange(shape, draw), normalized = Normalized(shape, range);
    ASSERT_EQ(ElementsIn(shape, normalized), ElementsIn(shape, range)) << TextOf(shape, range);
    const Numbers all = ElementsIn(shape, range.box);
    const bool is_contiguous = all.back() - all.front() + 1 == std::ssize(all);
    EXPECT_EQ(normalized.box == WholeBox(shape), is_contiguous) << TextOf(shape, range);
    changed += range.box != normalized.box ? 1 : 0;
  }
  EXPECT_GT(changed, 100);
  EXPECT_EQ(Normalized({3, 4}, {{}, 2, 5}).box, WholeBox({3, 4}));
}

TEST(ForEachSharedRun, VisitsEverySharedElementOnce) {
  base::RandomStream draw(base::DeriveSeed(7, "runs"));
  int shared_elements = 0;
  for (int round = 0; round < 5000; ++round) {
    const Shape shape = RandomShape(draw);
    const BoxRange a = RandomRange(shape, draw), b = RandomRange(shape, draw);
    const Numbers of_a = ElementsIn(shape, a.box), of_b = ElementsIn(shape, b.box);
    Numbers visited;
    const absl::Status status =
        ForEachSharedRun(a, b, [&](std::int64_t in_a, std::int64_t in_b, std::int64_t count) {
          EXPECT_GE(in_a, a.begin);
          EXPECT_LE(in_a + count, a.end);
          EXPECT_GE(in_b, b.begin);
          EXPECT_LE(in_b + count, b.end);
          for (std::int64_t i = 0; i < count; ++i) {
            EXPECT_EQ(of_a.at(in_a + i), of_b.at(in_b + i));
            visited.push_back(of_a.at(in_a + i));
          }
          return absl::OkStatus();
        });
    ASSERT_TRUE(status.ok());
    const Numbers in_a = ElementsIn(shape, a), in_b = ElementsIn(shape, b);
    Numbers expected;
    std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(expected));
    std::sort(visited.begin(), visited.end());
    ASSERT_EQ(visited, expected) << TextOf(shape, a) << " and " << TextOf(shape, b);
    shared_elements += static_cast<int>(expected.size());
  }
  EXPECT_GT(shared_elements, 1000);
}

TEST(ForEachSharedRun, RunsAreLongAndErrorsEndThem) {
  const BoxRange columns{{{0, 0, 0}, {4, 3, 8}}, 0, 96}, more{{{1, 1, 0}, {2, 4, 8}}, 0, 64};
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> runs;
  const auto visit = [&](std::int64_t in_a, std::int64_t in_b, std::int64_t count) {
    runs.emplace_back(in_a, in_b, count);
    return absl::OkStatus();
  };
  EXPECT_TRUE(ForEachSharedRun(columns, more, visit).ok());
  EXPECT_EQ(runs,
            (std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{32, 0, 16}, {56, 32, 16}}));
  int calls = 0;
  const absl::Status status = ForEachSharedRun(columns, more, [&](auto...) {
    ++calls;
    return absl::DataLossError("no");
  });
  EXPECT_EQ(status, absl::DataLossError("no"));
  EXPECT_EQ(calls, 1);
}

TEST(Box, InsideItsTensor) {
  EXPECT_TRUE(IsInside({{}, {}}, {}));
  EXPECT_TRUE(IsInside({{1, 2}, {2, 0}}, {3, 2}));
  EXPECT_FALSE(IsInside({{1, 2}, {2, 1}}, {3, 2}));
  EXPECT_FALSE(IsInside({{-1}, {1}}, {3}));
  EXPECT_FALSE(IsInside({{1}, {-1}}, {3}));
  EXPECT_FALSE(IsInside({{1}, {INT64_MAX}}, {3}));
  EXPECT_FALSE(IsInside({{0}, {3}}, {3, 2}));
  EXPECT_FALSE(IsInside({{0, 0}, {3}}, {3, 2}));
}

}  // namespace
}  // namespace plait::parallel
