// The error for ranks with different flags names the flag, the ranks and the values.
#include "tools/training/agreement.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"

namespace plait::training {
namespace {

using comm::testing::World;

TEST(AgreeOnSettings, TheSameFlagsAreFine) {
  EXPECT_TRUE(AgreeOnSettings(World(), {{"seed", "1"}, {"prompt", "a\nb=c"}}).ok());
}

TEST(AgreeOnSettings, TheFirstDifferenceIsNamed) {
  if (World().size() == 1) return;
  const int last = World().size() - 1;
  const bool other = World().rank() == last;
  const absl::Status status =
      AgreeOnSettings(World(), {{"a", "1"}, {"batch_size", other ? "8" : "4"}, {"z", other ? "x" : "y"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      absl::StrCat("ranks were started with different flags: --batch-size=4 on rank 0 and --batch-size=8 on "
                   "rank ",
                   last, "; start all ranks with the same command line"));
}

TEST(AgreeOnFacts, ADifferenceIsNamedOnAllRanks) {
  EXPECT_TRUE(AgreeOnFacts(World(), {{"classes", "2"}}).ok());
  if (World().size() == 1) return;
  const int last = World().size() - 1;
  const absl::Status status =
      AgreeOnFacts(World(), {{"classes", "2"}, {"training_samples", World().rank() == last ? "8" : "9"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            absl::StrCat("ranks have different data: training_samples=9 on rank 0 and training_samples=8 on "
                         "rank ",
                         last, "; give all ranks the same files"));
}

}  // namespace
}  // namespace plait::training
