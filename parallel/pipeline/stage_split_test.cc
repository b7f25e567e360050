// Splits against all possible splits, and the units of each rank.
#include "parallel/pipeline/stage_split.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/seed.h"

namespace plait::parallel {
namespace {

using models::ParameterSpec;
using models::ParameterUnit;
using models::UsedBy;

double CostOf(const StageCosts& costs, const StageRange& range) {
  double cost = (range.prologue ? costs.prologue : 0) + (range.epilogue ? costs.epilogue : 0);
  for (int block = range.first; block < range.first + range.count; ++block) cost += costs.blocks[block];
  return cost;
}

struct Quality {
  double most = 0, squares = 0;
};
Quality QualityOf(const StageCosts& costs, const std::vector<StageRange>& ranges) {
  Quality quality;
  for (const StageRange& range : ranges) {
    const double cost = CostOf(costs, range);
    quality.most = std::max(quality.most, cost);
    quality.squares += cost * cost;
  }
  return quality;
}

// Enumerates all ways to place `stages` - 1 separators between blocks, as bits of `walls`.
Quality BestOf(const StageCosts& costs, int stages) {
  Quality best = {.most = INFINITY, .squares = INFINITY};
  const int blocks = static_cast<int>(costs.blocks.size());
  for (int walls = 0; walls < 1 << (blocks - 1); ++walls) {
    if (__builtin_popcount(static_cast<unsigned>(walls)) != stages - 1) continue;
    std::vector<StageRange> ranges = {{.first = 0, .count = 0, .prologue = true}};
    for (int block = 0; block < blocks; ++block) {
      ++ranges.back().count;
      if (block + 1 < blocks && (walls >> block & 1) != 0) ranges.push_back({.first = block + 1});
    }
    ranges.back().epilogue = true;
    const Quality quality = QualityOf(costs, ranges);
    const double rounding = 1e-9 * quality.most;
    if (quality.most < best.most - rounding) best = quality;
    if (quality.most < best.most + rounding) best.squares = std::min(best.squares, quality.squares);
  }
  return best;
}

TEST(SplitBlocks, IsAsGoodAsTheBestOfAllSplits) {
  base::RandomStream stream(7);
  for (int blocks = 1; blocks <= 9; ++blocks) {
    for (int stages = 1; stages <= blocks; ++stages) {
      for (int round = 0; round < 4; ++round) {
        StageCosts costs = {.blocks = {}, .prologue = 3 * stream.Uniform(), .epilogue = 3 * stream.Uniform()};
        for (int block = 0; block < blocks; ++block) {
          costs.blocks.push_back(round == 0 ? 1 : stream.Uniform());
        }
        const std::vector<StageRange> ranges = *SplitBlocks(costs, stages);
        const Quality quality = QualityOf(costs, ranges), best = BestOf(costs, stages);
        EXPECT_NEAR(quality.most, best.most, 1e-9) << blocks << " blocks, " << stages << " stages";
        EXPECT_NEAR(quality.squares, best.squares, 1e-6) << blocks << " blocks, " << stages << " stages";
        int next = 0;
        for (std::size_t stage = 0; stage < ranges.size(); ++stage) {
          EXPECT_EQ(ranges[stage].first, next);
          EXPECT_GT(ranges[stage].count, 0);
          EXPECT_EQ(ranges[stage].prologue, stage == 0);
          EXPECT_EQ(ranges[stage].epilogue, stage + 1 == ranges.size());
          next += ranges[stage].count;
        }
        EXPECT_EQ(next, blocks);
      }
    }
  }
}

TEST(SplitBlocks, AHeavyHeadHasFewerBlocks) {
  const std::vector<StageRange> ranges =
      *SplitBlocks({.blocks = std::vector<double>(13, 1), .epilogue = 3}, 4);
  EXPECT_EQ(ToText(ranges), "blocks 0-3 | 4-7 | 8-11 | 12");
}

TEST(SplitBlocks, RefusesAnEmptyStage) {
  EXPECT_EQ(SplitBlocks({.blocks = {1, 1, 1}}, 4).status().message(),
            "4 pipeline stages, but the model has 3 blocks; expected at least 4, so that no stage is empty");
}

ParameterSpec Spec(const std::string& name, UsedBy used_by) {
  return {.name = name, .tensor = at::empty({4, 3}), .used_by = used_by};
}

// Six blocks and a root whose embedding is tied.
std::vector<ParameterUnit> Units() {
  std::vector<ParameterUnit> units = {
      {.name = "root",
       .parameters = {Spec("embedding", UsedBy::kBoth), Spec("positions", UsedBy::kPrologue),
                      Spec("norm", UsedBy::kEpilogue)}}};
  for (int block = 0; block < 6; ++block) {
    const std::string name = "block." + std::to_string(block);
    units.push_back({.name = name, .parameters = {Spec(name + ".weight", UsedBy::kBoth)}, .block = block});
  }
  return units;
}

// "root: positions; root (tied): embedding; block.0 as 0: block.0.weight"
std::string TextOf(const std::vector<RankUnit>& units) {
  std::string text;
  for (const auto& [unit, index] : units) {
    EXPECT_EQ(unit.name.substr(0, Units()[index].name.size()), Units()[index].name);
    text += (text.empty() ? "" : "; ") + unit.name;
    if (unit.block >= 0) text += " as " + std::to_string(unit.block);
    for (const ParameterSpec& p : unit.parameters) {
      text += ", " + p.name;
      if (p.placement.partial == std::vector<std::string>{"pp_ends"}) text += " summed";
    }
  }
  return text;
}

TEST(UnitsOfRank, EndsHaveTheirRootParameters) {
  const std::vector<StageRange> stages = *SplitBlocks({.blocks = std::vector<double>(6, 1)}, 3);
  EXPECT_EQ(TextOf(UnitsOfRank(Units(), stages, {0, 1, 2}, 0)),
            "root, positions; root (tied), embedding summed; block.0 as 0, block.0.weight; block.1 as 1, "
            "block.1.weight");
  EXPECT_EQ(TextOf(UnitsOfRank(Units(), stages, {0, 1, 2}, 1)),
            "block.2 as 0, block.2.weight; block.3 as 1, block.3.weight");
  EXPECT_EQ(TextOf(UnitsOfRank(Units(), stages, {0, 1, 2}, 2)),
            "root, norm; root (tied), embedding summed; block.4 as 0, block.4.weight; block.5 as 1, "
            "block.5.weight");
}

TEST(UnitsOfRankDeathTest, ABufferOfBothEndsHasNoPlaceOfItsOwn) {
  std::vector<ParameterUnit> units = Units();
  units[0].parameters[0].role = models::ParameterRole::kBuffer;
  const std::vector<StageRange> stages = *SplitBlocks({.blocks = std::vector<double>(6, 1)}, 3);
  EXPECT_DEATH(UnitsOfRank(units, stages, {0, 1, 2}, 0),
               "say with ParameterSpec::used_by which of them has it");
  EXPECT_FALSE(UnitsOfRank(units, stages, {0, 1, 0}, 0).empty());
}

TEST(UnitsOfRank, BothEndsOnOneRankHaveNothingToSum) {
  const std::vector<StageRange> stages = *SplitBlocks({.blocks = std::vector<double>(6, 1)}, 6);
  EXPECT_EQ(TextOf(UnitsOfRank(Units(), stages, {0, 1, 2, 2, 1, 0}, 0)),
            "root, embedding, positions, norm; block.0 as 0, block.0.weight; block.5 as 1, block.5.weight");
  EXPECT_EQ(TextOf(UnitsOfRank(Units(), stages, {0, 1, 2, 2, 1, 0}, 2)),
            "block.2 as 0, block.2.weight; block.3 as 1, block.3.weight");
}

TEST(CostsByParameters, CountBlocksAndWhatTheHeadReads) {
  const StageCosts costs = CostsByParameters(Units());
  EXPECT_EQ(costs.blocks, std::vector<double>(6, 12));
  EXPECT_EQ(costs.prologue, 0);
  EXPECT_EQ(costs.epilogue, 24);  // embedding and norm
}

// Unequal parts of experts or of a vocabulary.
TEST(CostsByParameters, AreTheSameForRanksWithOtherParts) {
  for (const std::int64_t rows : {1, 2}) {
    std::vector<ParameterUnit> units = Units();
    ParameterSpec& p = units.back().parameters[0];
    const std::vector<std::int64_t> whole = p.tensor.sizes().vec();
    std::vector<std::int64_t> begin(whole.size(), 0), part = whole;
    part[0] = rows;
    p.placement = {.shape = whole, .boxes = {{begin, part}}};
    p.tensor = p.tensor.narrow(0, 0, rows);
    EXPECT_EQ(CostsByParameters(units).blocks, std::vector<double>(6, 12));
  }
}

}  // namespace
}  // namespace plait::parallel
