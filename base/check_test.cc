#include "base/check.h"

#include <csignal>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace plait::base {
namespace {

TEST(CheckTest, TrueConditionDoesNothing) {
  int evaluated = 0;
  PLAIT_CHECK(1 + 1 == 2) << "not evaluated " << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckTest, ConditionIsEvaluatedOnce) {
  int evaluated = 0;
  PLAIT_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, SaysWhereWhatAndWhy) {
  const int level = 3;
  EXPECT_DEATH(PLAIT_CHECK(level < 3) << "level " << level,
               "^base/check_test\\.cc:[0-9]+: PLAIT_CHECK\\(level < 3\\) failed: level 3\n$");
}

TEST(CheckDeathTest, MessageIsOptional) {
  EXPECT_EXIT(PLAIT_CHECK(false), testing::KilledBySignal(SIGABRT), "PLAIT_CHECK\\(false\\) failed\n$");
}

TEST(CheckTest, IsOneStatementInIfElse) {
  int taken = 0;
  if (taken == 1)
    PLAIT_CHECK(true) << "first branch";
  else
    taken = 2;
  EXPECT_EQ(taken, 2);
}

TEST(CheckDeathTest, CheckOk) {
  PLAIT_CHECK_OK(absl::OkStatus());
  EXPECT_DEATH(PLAIT_CHECK_OK(absl::NotFoundError("no such file")), "failed: NOT_FOUND: no such file");
}

}  // namespace
}  // namespace plait::base
