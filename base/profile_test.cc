#include "base/profile.h"

#include <gtest/gtest.h>

namespace plait::base {
namespace {

// Clocks that move when the test says so, by binary fractions, so that sums are exact.
struct TestClocks {
  double wall = 1000, processor = 50;
  ProfileClocks Get() {
    return {.wall = [this] { return wall; }, .processor = [this] { return processor; }};
  }
};

TEST(Profile, SumsScopesOfOneNameBelowTheirParent) {
  TestClocks clocks;
  Profile profile("main", clocks.Get());
  for (int i = 0; i < 3; ++i) {
    const Profile::Scope step(profile, "step");
    clocks.wall += 1;
    const Profile::Scope inner(profile, "forward");
    clocks.wall += 0.25;
  }
  {
    const Profile::Scope other(profile, "forward");
    clocks.wall += 8;
  }
  clocks.wall += 16;
  EXPECT_EQ(profile.SecondsOf("step/forward"), 0.75);
  EXPECT_EQ(profile.SecondsOf("step"), 3.75);
  EXPECT_EQ(profile.SecondsOf("forward"), 8);
  EXPECT_EQ(profile.wall_seconds(), 27.75);
  EXPECT_EQ(profile.SecondsOf("step/backward"), 0);
  EXPECT_EQ(profile.SecondsOf("step/forward/step"), 0);
}

TEST(Profile, OpenScopesCountUpToNow) {
  TestClocks clocks;
  Profile profile("main", clocks.Get());
  clocks.wall += 1;
  const Profile::Scope step(profile, "step");
  clocks.wall += 0.5;
  EXPECT_EQ(profile.SecondsOf("step"), 0.5);
  clocks.wall += 0.5;
  EXPECT_EQ(profile.SecondsOf("step"), 1);
  EXPECT_EQ(profile.wall_seconds(), 2);
}

TEST(Profile, TreeListsTheLongestFirst) {
  TestClocks clocks;
  Profile profile("main", clocks.Get());
  {
    const Profile::Scope scope(profile, "short");
    clocks.wall += 0.5;
  }
  for (int i = 0; i < 2; ++i) {
    const Profile::Scope scope(profile, "long");
    clocks.wall += 0.25;
    const Profile::Scope inner(profile, "inner");
    clocks.wall += 1.5;
  }
  EXPECT_EQ(profile.Tree({}),
            "4.000 main\n"
            "├─ 3.500 long  2 x\n"
            "│  ├─ 3.000 inner  2 x\n"
            "│  └─ 0.500 [self]\n"
            "└─ 0.500 short\n");
  EXPECT_EQ(profile.Tree({.utf8 = false}),
            "4.000 main\n"
            "|- 3.500 long  2 x\n"
            "|  |- 3.000 inner  2 x\n"
            "|  `- 0.500 [self]\n"
            "`- 0.500 short\n");
}

TEST(Profile, SmallNodesAreLeftOut) {
  TestClocks clocks;
  Profile profile("main", clocks.Get());
  {
    const Profile::Scope scope(profile, "tiny");
    clocks.wall += 0.125;
  }
  const Profile::Scope scope(profile, "large");
  clocks.wall += 0.875;
  EXPECT_EQ(profile.Tree({.least_share = 0.2, .utf8 = false}),
            "1.000 main\n"
            "`- 0.875 large\n");
  EXPECT_EQ(profile.Tree({.least_share = 0.1, .utf8 = false}),
            "1.000 main\n"
            "|- 0.875 large\n"
            "`- 0.125 tiny\n");
}

TEST(Profile, ProcessorTimeIsThatOfItsClock) {
  TestClocks clocks;
  const Profile profile("main", clocks.Get());
  clocks.wall += 4;
  clocks.processor += 1.5;
  EXPECT_EQ(profile.processor_seconds(), 1.5);
  EXPECT_EQ(profile.wall_seconds(), 4);
}

// The processor's clock runs while the program computes, and the world's runs no slower for one thread.
TEST(Profile, SystemClocksRun) {
  const ProfileClocks clocks = SystemClocks();
  const double wall = clocks.wall(), processor = clocks.processor();
  while (clocks.processor() == processor) {
  }
  const double used = clocks.processor() - processor;
  EXPECT_GT(used, 0);
  EXPECT_LE(used, clocks.wall() - wall);
}

}  // namespace
}  // namespace plait::base
