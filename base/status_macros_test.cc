#include "base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace plait::base {
namespace {

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(value, " is odd"));
  return value / 2;
}

absl::StatusOr<int> Quarter(int value, int* calls) {
  PLAIT_ASSIGN_OR_RETURN(const int half, Half(value));
  ++*calls;
  int quarter = 0;
  PLAIT_ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::Status BothEven(int a, int b, int* calls) {
  PLAIT_RETURN_IF_ERROR(Half(a));
  ++*calls;
  PLAIT_RETURN_IF_ERROR(Half(b).status());
  ++*calls;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, AssignOrReturn) {
  int calls = 0;
  EXPECT_EQ(*Quarter(12, &calls), 3);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Quarter(6, &calls).status().message(), "3 is odd");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(Quarter(5, &calls).status().message(), "5 is odd");
  EXPECT_EQ(calls, 2);
}

TEST(StatusMacrosTest, ReturnIfErrorStopsAtTheFirst) {
  int calls = 0;
  EXPECT_TRUE(BothEven(2, 4, &calls).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(BothEven(1, 3, &calls).message(), "1 is odd");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(BothEven(2, 3, &calls).message(), "3 is odd");
  EXPECT_EQ(calls, 3);
}

absl::StatusOr<std::unique_ptr<int>> Make() { return std::make_unique<int>(7); }

absl::StatusOr<int> Unwrap() {
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<int> made, Make());
  return *made;
}

TEST(StatusMacrosTest, MovesValuesThatCannotBeCopied) { EXPECT_EQ(*Unwrap(), 7); }

TEST(StatusMacrosTest, PrefixedKeepsTheCode) {
  const absl::Status status = Prefixed(absl::DataLossError("truncated"), "a.h5");
  EXPECT_EQ(status, absl::DataLossError("a.h5: truncated"));
  EXPECT_TRUE(Prefixed(absl::OkStatus(), "a.h5").ok());
}

}  // namespace
}  // namespace plait::base
