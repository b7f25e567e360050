#include "tools/report_parts/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

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

TEST(Settings, NotWhereARunWasInterrupted) {
  const NamedTexts whole = {{"settings", "--lr=1"}, {"began_at_step", "0"}};
  const NamedTexts resumed = {{"settings", "--lr=1"},
                              {"resumed", "2026-11-21T15:30:00Z"},
                              {"resumed_at_draw", "7"},
                              {"resumed_at_draws", "3 7"},
                              {"began_at_step", "20"}};
  EXPECT_THAT(ChangedSettings(std::vector<NamedTexts>{SettingsOf(whole), SettingsOf(resumed)}), IsEmpty());
}

TEST(Settings, AmongManyNames) {
  constexpr std::size_t kNames = 100'000;
  std::string line = "--host=n2";
  for (std::size_t i = 0; i < kNames; ++i) absl::StrAppend(&line, " --n", i, "=1");
  const std::vector<NamedTexts> runs = {
      SettingsOf({{"host", "n1"}, {"settings", line}}),
      SettingsOf({{"settings", absl::StrCat(line, " --n", kNames - 1, "=2")}})};
  ASSERT_EQ(runs[0].size(), kNames + 1);
  EXPECT_EQ(runs[0][0].second, "n2") << "of the line";
  const std::vector<ChangedSetting> changed = ChangedSettings(runs);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].name, absl::StrCat("n", kNames - 1));
  EXPECT_THAT(changed[0].values, ElementsAre("1", "2"));
}

}  // namespace
}  // namespace plait::report
