#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace plait::base {
namespace {

TEST(JsonDepth, CountsOpenBracketsOutsideOfStrings) {
  EXPECT_EQ(JsonDepth(""), 0);
  EXPECT_EQ(JsonDepth("12"), 0);
  EXPECT_EQ(JsonDepth("{\"a\": [1, [2]], \"b\": {}}"), 3);
  EXPECT_EQ(JsonDepth("[\"[[[\", \"\\\"[[\", \"\\\\\", []]"), 2);
  EXPECT_EQ(JsonDepth("]]]["), 0) << "not JSON anyway";
  EXPECT_EQ(JsonDepth(std::string(1'000'000, '[')), 1'000'000);
}

}  // namespace
}  // namespace plait::base
