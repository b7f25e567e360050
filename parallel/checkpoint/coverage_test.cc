// Boxes that cover a tensor, and boxes with injected faults, against a count of every element.
#include "parallel/checkpoint/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/seed.h"

namespace plait::parallel {
namespace {

// Whether a box contains the element with this row-major number.
bool Contains(const Shape& shape, const models::Box& box, std::int64_t element) {
  bool inside = true;
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) {
    const std::int64_t coordinate = element % shape[d];
    inside = inside && coordinate >= box.begin[d] && coordinate < box.begin[d] + box.size[d];
  }
  return inside;
}

bool EachOnce(const Shape& shape, const std::vector<OwnedBox>& boxes) {
  for (std::int64_t element = 0; element < ElementsOf(shape); ++element) {
    const auto owners = std::count_if(boxes.begin(), boxes.end(), [&](const OwnedBox& owned) {
      return Contains(shape, owned.box, element);
    });
    if (owners != 1) return false;
  }
  return true;
}

// Checks a reported fault element by element. Owners are the boxes' indices.
void ExpectTrue(const Shape& shape, const std::vector<OwnedBox>& boxes, const CoverageFault& fault) {
  std::int64_t elements = 0;
  for (std::int64_t element = 0; element < ElementsOf(shape); ++element) {
    if (!Contains(shape, fault.box, element)) continue;
    ++elements;
    if (fault.owners.empty()) {
      for (const OwnedBox& owned : boxes) ASSERT_FALSE(Contains(shape, owned.box, element));
    } else {
      ASSERT_EQ(fault.owners.size(), 2u);
      ASSERT_NE(fault.owners[0], fault.owners[1]);
      for (const std::int64_t owner : fault.owners) {
        ASSERT_TRUE(Contains(shape, boxes[owner].box, element));
      }
    }
  }
  EXPECT_GT(elements, 0);
}

// A tensor of 1 to 4 dimensions that is cut again and again.
std::vector<OwnedBox> RandomPartition(base::RandomStream& draw, Shape& shape) {
  shape.resize(1 + draw.Below(4));
  for (std::int64_t& size : shape) size = 1 + static_cast<std::int64_t>(draw.Below(6));
  std::vector<OwnedBox> boxes = {{WholeBox(shape)}};
  for (std::uint64_t cuts = draw.Below(12); cuts > 0; --cuts) {
    models::Box& first = boxes[draw.Below(boxes.size())].box;
    const std::size_t d = draw.Below(shape.size());
    if (first.size[d] == 1) continue;
    models::Box second = first;
    first.size[d] = 1 + static_cast<std::int64_t>(draw.Below(first.size[d] - 1));
    second.begin[d] += first.size[d];
    second.size[d] -= first.size[d];
    boxes.push_back({second});
  }
  base::Shuffle(draw, absl::MakeSpan(boxes));
  for (std::size_t i = 0; i < boxes.size(); ++i) boxes[i].owner = static_cast<std::int64_t>(i);
  return boxes;
}

// Removes a box, duplicates it, or changes its begin or size by one. Never empty, never outside.
void PlantMistake(base::RandomStream& draw, const Shape& shape, std::vector<OwnedBox>& boxes) {
  const std::size_t which = draw.Below(boxes.size()), d = draw.Below(shape.size());
  models::Box& box = boxes[which].box;
  switch (draw.Below(5)) {
    case 0:
      if (boxes.size() > 1) boxes.pop_back();
      return;
    case 1:
      boxes.push_back({box, static_cast<std::int64_t>(boxes.size())});
      return;
    case 2:
      if (box.size[d] > 1) --box.size[d];
      return;
    case 3:
      if (box.begin[d] > 0) --box.begin[d];
      return;
    default:
      if (box.begin[d] + box.size[d] < shape[d]) ++box.size[d];
  }
}

TEST(Coverage, RandomPartitionsAndPlantedMistakes) {
  base::RandomStream draw(base::DeriveSeed(1, "coverage"));
  int faults = 0;
  for (int round = 0; round < 4000; ++round) {
    Shape shape;
    std::vector<OwnedBox> boxes = RandomPartition(draw, shape);
    ASSERT_FALSE(FindCoverageFault(shape, boxes).has_value());
    PlantMistake(draw, shape, boxes);
    const std::optional<CoverageFault> fault = FindCoverageFault(shape, boxes);
    ASSERT_EQ(fault.has_value(), !EachOnce(shape, boxes)) << ::testing::PrintToString(shape);
    if (!fault) continue;
    ExpectTrue(shape, boxes, *fault);
    ++faults;
  }
  EXPECT_GT(faults, 2000);
}

TEST(Coverage, ScalarsAndTensorsWithoutElements) {
  EXPECT_FALSE(FindCoverageFault({}, {{{}, 0}}).has_value());
  EXPECT_TRUE(FindCoverageFault({}, {}).has_value());
  EXPECT_EQ(FindCoverageFault({}, {{{}, 3}, {{}, 4}})->owners, (std::vector<std::int64_t>{3, 4}));
  EXPECT_FALSE(FindCoverageFault({3, 0}, {}).has_value());
}

}  // namespace
}  // namespace plait::parallel
