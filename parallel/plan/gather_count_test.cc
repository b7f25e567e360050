// Counted gathers against the minimum: a block stays unsharded between two uses only if no other block is used between
// them.
#include "parallel/plan/gather_count.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace plait::parallel {
namespace {

constexpr int kBlocksOfStage = 3;

// The blocks of `rank` (numbered on it) that run, in order.
std::vector<int> Uses(const Schedule& schedule, int rank) {
  std::vector<int> first(schedule.rank_of_stage.size(), 0);
  int blocks = 0;
  for (std::size_t stage = 0; stage < first.size(); ++stage) {
    first[stage] = blocks;
    if (schedule.rank_of_stage[stage] == rank) blocks += kBlocksOfStage;
  }
  std::vector<int> uses;
  for (const Action& action : schedule.actions[rank]) {
    for (int i = 0; i < kBlocksOfStage; ++i) {
      const int block = action.kind == ActionKind::kForward ? i : kBlocksOfStage - 1 - i;
      uses.push_back(first[action.stage] + block);
    }
  }
  return uses;
}

TEST(GatherCount, IsTheLeast) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::k1F1B, ScheduleKind::kInterleaved}) {
    for (const int ranks : {1, 2, 4}) {
      const Schedule schedule = *MakeSchedule(kind, {.ranks = ranks, .micro_batches = 8});
      std::vector<StageRange> stages;
      for (int i = 0; i < schedule.stages(); ++i) {
        stages.push_back({.first = i * kBlocksOfStage, .count = kBlocksOfStage});
      }
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<int> uses = Uses(schedule, rank);
        std::vector<int> expected(kBlocksOfStage * schedule.chunks, 0);
        for (std::size_t i = 0; i < uses.size(); ++i) {
          if (i == 0 || uses[i] != uses[i - 1]) ++expected[uses[i]];
        }
        for (const bool prefetch : {true, false}) {
          EXPECT_EQ(CountGathers(schedule, stages, rank, /*reshard=*/true, prefetch).blocks, expected)
              << absl::StrCat(schedule.name, ", rank ", rank, " of ", ranks, prefetch ? "" : ", no prefetch");
        }
        if (kind != ScheduleKind::kGpipe)
          continue;  // all forward passes first: kept, a block is gathered once
        EXPECT_EQ(CountGathers(schedule, stages, rank, /*reshard=*/false, /*prefetch=*/true).blocks,
                  std::vector<int>(expected.size(), 1));
      }
    }
  }
}

}  // namespace
}  // namespace plait::parallel
