#include "data/history/run_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

namespace plait::data {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(RunAttributes, KnowTheProcess) {
  const auto attributes = RunAttributes({.program = "p", .seed = "5", .ranks = 3, .settings = "--a=1"});
  EXPECT_EQ(attributes.at("program"), "p");
  EXPECT_EQ(attributes.at("ranks"), "3");
  EXPECT_EQ(attributes.at("seed"), "5");
  EXPECT_EQ(attributes.at("settings"), "--a=1");
  EXPECT_THAT(attributes.at("command"), HasSubstr("history_test"));
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  EXPECT_EQ(attributes.at("host"), host);
  EXPECT_THAT(attributes.at("started"), MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(attributes.count("trace"), 0u) << "what is empty is left out";
  EXPECT_EQ(attributes.count("revision"), 0u);
}

}  // namespace
}  // namespace plait::data
