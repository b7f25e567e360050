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

// The shell's own splitting is the judge.
TEST(QuotedCommand, IsReadBackByAShell) {
  const std::vector<std::string> words = {"a b", "it's", "", "$HOME", "x=\"1\"", "plain-1.0/a_b", "*", "\\"};
  const std::string command = "printf '[%s]' " + QuotedCommand(words);
  std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(command.c_str(), "r"), pclose);
  std::string output(1000, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), shell.get()));
  EXPECT_EQ(output, "[a b][it's][][$HOME][x=\"1\"][plain-1.0/a_b][*][\\]");
  EXPECT_EQ(QuotedCommand({"plain-1.0/a_b", "--x=3"}), "plain-1.0/a_b --x=3");
}

}  // namespace
}  // namespace plait::data
