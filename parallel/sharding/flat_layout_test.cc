// Layouts against a table of who owns which element, made one element at a time.
#include "parallel/sharding/flat_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace plait::parallel {
namespace {

std::vector<FlatParameter> Parameters() {
  return {{"norm", {7}, false},
          {"w", {3, 5}, true},
          {"scalar", {}, false},
          {"v", {40, 2}, true},
          {"none", {0}, true}};
}

TEST(FlatLayoutTest, DecayedComeFirstAlignedAndApart) {
  const FlatLayout layout = FlatLayout::Make(Parameters(), 1);
  std::set<std::int64_t> taken;
  for (const FlatParameter& p : layout.parameters()) {
    EXPECT_EQ(p.offset % FlatLayout::kAlignment, 0) << p.name;
    for (std::int64_t i = 0; i < p.count; ++i) {
      EXPECT_TRUE(taken.insert(p.offset + i).second) << p.name << " overlaps";
      EXPECT_EQ(p.decays, p.offset + i < layout.DecayedCount(0)) << p.name;
    }
  }
  EXPECT_EQ(layout.parameter_count(), 7 + 15 + 1 + 80);
  // 15 -> 16, 80, 7 -> 16, 1 -> 16
  EXPECT_EQ(layout.count(), 16 + 80 + 16 + 16);
}

TEST(FlatLayoutTest, SlicesOfAllRanksAreEveryElementOnce) {
  for (const int ranks : {1, 2, 3, 4, 7, 8}) {
    const FlatLayout layout = FlatLayout::Make(Parameters(), ranks);
    EXPECT_EQ(layout.count(), ranks * layout.shard_count());
    EXPECT_LT(layout.count(), 128 + ranks * FlatLayout::kAlignment);
    std::map<std::pair<std::size_t, std::int64_t>, int> owners;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const FlatSlice& s : layout.Slices(rank)) {
        const FlatParameter& p = layout.parameters()[s.parameter];
        EXPECT_EQ(rank * layout.shard_count() + s.shard_offset, p.offset + s.begin);
        EXPECT_GE(s.shard_offset, 0);
        EXPECT_LE(s.shard_offset + s.end - s.begin, layout.shard_count());
        EXPECT_EQ(p.decays, s.shard_offset < layout.DecayedCount(rank));
        for (std::int64_t i = s.begin; i < s.end; ++i) ++owners[{s.parameter, i}];
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(owners.size()), layout.parameter_count());
    for (const auto& [element, count] : owners) EXPECT_EQ(count, 1);
  }
}

TEST(FlatLayoutTest, NoParametersNoElements) { EXPECT_EQ(FlatLayout::Make({}, 4).count(), 0); }

}  // namespace
}  // namespace plait::parallel
