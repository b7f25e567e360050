#include "base/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace plait::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void SleepMilliseconds(int count) { std::this_thread::sleep_for(std::chrono::milliseconds(count)); }

TEST(Profile, SumsScopesOfOneNameBelowTheirParent) {
  Profile profile("main");
  for (int i = 0; i < 3; ++i) {
    const Profile::Scope step(profile, "step");
    const Profile::Scope inner(profile, "forward");
    SleepMilliseconds(4);
  }
  { const Profile::Scope other(profile, "forward"); }
  // Sleeping takes at least as long as it was asked to.
  EXPECT_GE(profile.SecondsOf("step/forward"), 0.012);
  EXPECT_GE(profile.SecondsOf("step"), profile.SecondsOf("step/forward"));
  EXPECT_GE(profile.wall_seconds(), profile.SecondsOf("step"));
  EXPECT_LT(profile.SecondsOf("forward"), profile.SecondsOf("step/forward"));
  EXPECT_EQ(profile.SecondsOf("step/backward"), 0);
  EXPECT_EQ(profile.SecondsOf("step/forward/step"), 0);
}

TEST(Profile, OpenScopesCountUpToNow) {
  Profile profile("main");
  const Profile::Scope step(profile, "step");
  SleepMilliseconds(5);
  EXPECT_GE(profile.SecondsOf("step"), 0.005);
  EXPECT_GE(profile.wall_seconds(), profile.SecondsOf("step"));
}

std::string TreeWithoutNumbers(const Profile& profile, const TreeStyle& style) {
  std::string text = profile.Tree(style), names;
  bool number = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') number = true;
    if (!number) names += c;
    if (c == ' ') number = false;
  }
  return names;
}

TEST(Profile, TreeListsTheLongestFirst) {
  Profile profile("main");
  {
    const Profile::Scope scope(profile, "short");
    SleepMilliseconds(5);
  }
  for (int i = 0; i < 2; ++i) {
    const Profile::Scope scope(profile, "long");
    const Profile::Scope inner(profile, "inner");
    SleepMilliseconds(20);
  }
  const TreeStyle style = {.least_share = 0.05};
  EXPECT_EQ(TreeWithoutNumbers(profile, style),
            "main\n"
            "├─ long  x\n"
            "│  └─ inner  x\n"
            "└─ short\n");
  EXPECT_THAT(profile.Tree(style), HasSubstr("long  2 x\n"));
  EXPECT_EQ(TreeWithoutNumbers(profile, {.least_share = 0.05, .utf8 = false}),
            "main\n"
            "|- long  x\n"
            "|  `- inner  x\n"
            "`- short\n");
}

TEST(Profile, SmallNodesAreLeftOut) {
  Profile profile("main");
  { const Profile::Scope scope(profile, "tiny"); }
  const Profile::Scope scope(profile, "large");
  SleepMilliseconds(20);
  EXPECT_THAT(profile.Tree({.least_share = 0.2}), Not(HasSubstr("tiny")));
  EXPECT_THAT(profile.Tree({.least_share = 0}), HasSubstr("tiny"));
}

TEST(Profile, ProcessorTimeIsNotSleep) {
  Profile profile("main");
  SleepMilliseconds(200);
  EXPECT_LT(profile.processor_seconds(), 0.5 * profile.wall_seconds());
}

}  // namespace
}  // namespace plait::base
