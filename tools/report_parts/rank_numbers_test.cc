#include "tools/report_parts/rank_numbers.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/hdf5/file.h"
#include "tools/report_parts/report_tables.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {
namespace {

// Times per rank that count up, of which the first `empty` draws have none.
RunNumbers RunOf(std::int64_t draws, std::int64_t ranks, std::int64_t empty) {
  const std::string path = testing::TempDir() + "/ranks.h5";
  std::filesystem::remove(path);
  std::vector<double> times;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      times.push_back(draw < empty ? kNaN : 1 + static_cast<double>(rank));
    }
  }
  data::File file = *data::File::Create(path);
  EXPECT_TRUE(data::WriteArray<double>(file, "/dt_per_rank", times, {draws, ranks}).ok());
  EXPECT_TRUE(file.Close().ok());
  RunNumbers run = *ReadRun(path, {});
  run.label = "ranks.h5";
  return run;
}

TEST(RankNumbers, DrawsWithoutValuesAreLookedAt) {
  const RunNumbers run = RunOf(41, 2, 1);
  EXPECT_EQ(run.ranks[0].draws, 41);
  EXPECT_EQ(run.ranks[0].slowest_shares, (std::vector<double>{0, 1})) << "of the draws with values";
  EXPECT_EQ(RankTable({run}, 2).foot,
            "ranks.h5: slowest in dt_per_rank is rank 1, 1.33 times the median rank.");
}

// A block of 4096 draws of 513 ranks has more values than are read.
TEST(RankNumbers, LongRunsOfManyRanksSayWhatWasRead) {
  const RunNumbers run = RunOf(4097, 513, 1);
  EXPECT_EQ(run.ranks[0].draws, 4096);
  EXPECT_NE(RankTable({run}, 2).foot.find("(4,096 of 4,097 draws looked at)"), std::string::npos);
}

}  // namespace
}  // namespace plait::report
