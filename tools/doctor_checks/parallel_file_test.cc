#include "tools/doctor_checks/parallel_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"

namespace plait::doctor {
namespace {

using comm::testing::World;
using ::testing::HasSubstr;

std::vector<RankFacts> Ranks() {
  std::vector<RankFacts> ranks(World().size());
  for (int rank = 0; rank < World().size(); ++rank) {
    ranks[rank].rank = rank;
    ranks[rank].host = absl::StrCat("node", rank);
  }
  return ranks;
}

// The same on all ranks; made by rank 0.
std::string SharedFolder() {
  const std::string folder = absl::StrCat(testing::TempDir(), "/parallel_file_test_", World().size());
  if (World().rank() == 0) std::filesystem::create_directories(folder);
  World().Barrier();
  return folder;
}

TEST(CheckParallelFile, WritesReadsAndLeavesNothing) {
  const std::string folder = SharedFolder();
  const Finding finding = CheckParallelFile(World(), Ranks(), folder);
  EXPECT_EQ(finding.severity, Severity::kOk) << Line(finding);
  EXPECT_THAT(finding.found,
              HasSubstr(absl::StrCat(World().size(), World().size() == 1 ? " rank " : " ranks ",
                                     "wrote one file in ", folder)));
  World().Barrier();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  World().Barrier();
  if (World().rank() == 0) std::filesystem::remove(folder);
}

TEST(CheckParallelFile, NamesTheRanksThatDoNotSeeTheFolder) {
  const int last = World().size() - 1;
  const std::string folder = World().rank() == last ? "/nowhere" : "/tmp";
  const Finding finding = CheckParallelFile(World(), Ranks(), folder);
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(finding.found,
              HasSubstr(absl::StrCat("rank ", last, " (node", last, "): there is no such folder")));
  EXPECT_THAT(finding.found, ::testing::Not(HasSubstr("), rank")));
}

TEST(CheckParallelFile, AFolderThatTakesNoFilesIsAnError) {
  const Finding finding = CheckParallelFile(World(), Ranks(), "/proc");
  EXPECT_EQ(finding.severity, Severity::kError) << Line(finding);
  EXPECT_THAT(finding.found, HasSubstr("rank 0 (node0): "));
  EXPECT_THAT(finding.remedy, HasSubstr("--folder"));
}

}  // namespace
}  // namespace plait::doctor
