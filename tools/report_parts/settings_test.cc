#include "tools/report_parts/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Settings, OnlyWhatChanged) {
  const std::vector<NamedTexts> runs = {
      SettingsOf({{"host", "n1"}, {"command", "a"}, {"settings", "--lr=1 --same=2 --gone=3"}}),
      SettingsOf({{"host", "n2"}, {"command", "b"}, {"settings", "--lr=5 --same=2 --new=4"}})};
  const std::vector<ChangedSetting> changed = ChangedSettings(runs);
  ASSERT_EQ(changed.size(), 4u);
  EXPECT_EQ(changed[0].name, "host");
  EXPECT_EQ(changed[1].name, "lr");
  EXPECT_THAT(changed[1].values, ElementsAre("1", "5"));
  EXPECT_EQ(changed[2].name, "gone");
  EXPECT_THAT(changed[2].values, ElementsAre("3", "-"));
  EXPECT_EQ(changed[3].name, "new");
  EXPECT_THAT(changed[3].values, ElementsAre("-", "4"));
  EXPECT_THAT(ChangedSettings(absl::MakeConstSpan(runs).first(1)), IsEmpty());
}

}  // namespace
}  // namespace plait::report
