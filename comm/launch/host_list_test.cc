#include "comm/launch/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <utility>

namespace plait::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The right sides are what `scontrol show hostnames LIST` of Slurm 22.05 prints; it refuses n[08-10]-ib.
TEST(ExpandSlurmHosts, ExpandsWhatSlurmCompresses) {
  const std::pair<const char*, std::vector<std::string>> table[] = {
      {"login1", {"login1"}},
      {"a,b", {"a", "b"}},
      {"frontier[001-004,007]", {"frontier001", "frontier002", "frontier003", "frontier004", "frontier007"}},
      {"n[9-11]", {"n9", "n10", "n11"}},
      {"n[099-101]", {"n099", "n100", "n101"}},
      {"n[08-10]-ib", {"n08-ib", "n09-ib", "n10-ib"}},
      {"x[1-2]y[3,5]", {"x1y3", "x1y5", "x2y3", "x2y5"}},
      {"x[1-2],y[3,5],z", {"x1", "x2", "y3", "y5", "z"}},
      {"b,a,b", {"b", "a", "b"}},
  };
  for (const auto& [list, hosts] : table) {
    const auto expanded = ExpandSlurmHosts(list);
    ASSERT_TRUE(expanded.ok()) << expanded.status();
    EXPECT_EQ(*expanded, hosts) << list;
  }
}

TEST(ExpandSlurmHosts, SaysWhatDoesNotFit) {
  const std::pair<const char*, const char*> table[] = {
      {"", "an empty name"},
      {"a,,b", "an empty name"},
      {"a,", "an empty name"},
      {"n[1-3", "[ without ]"},
      {"n1]", "] without ["},
      {"n[1[2]]", "a bracket within a bracket"},
      {"n[]", "is no number"},
      {"n[1-2-3]", "1-2-3 is no number"},
      {"n[a-b]", "a-b is no number"},
      {"n[3-1]", "3-1 runs backwards"},
      {"n[0-99999999]", "too many hosts"},
      {"n[0-9999]m[0-9999]", "too many hosts"},
      {"n[1-99999999999]", "is no number"},
  };
  for (const auto& [list, what] : table) {
    const auto expanded = ExpandSlurmHosts(list);
    ASSERT_FALSE(expanded.ok()) << list;
    EXPECT_THAT(expanded.status().message(), HasSubstr(what));
  }
}

// No memory is taken for numbers that no list may have.
TEST(ExpandSlurmHosts, ManyLargeRanges) {
  std::string list = "n[0-150000";
  for (int i = 0; i < 1000; ++i) list += ",0-150000";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit less = {rlim_t{1} << 30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &less), 0);
  const absl::Status status = ExpandSlurmHosts(list + "]").status();
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_THAT(status.message(), HasSubstr("too many hosts"));
}

TEST(ExpandSlurmCounts, ExpandsRepeats) {
  EXPECT_THAT(*ExpandSlurmCounts("4(x2),1"), ElementsAre(4, 4, 1));
  EXPECT_THAT(*ExpandSlurmCounts("8"), ElementsAre(8));
  for (const char* bad : {"", "4(x2", "4(2)", "x", "0", "4(x0)", "1,,2"}) {
    EXPECT_FALSE(ExpandSlurmCounts(bad).ok()) << bad;
  }
}

std::vector<std::pair<std::string, int>> Pairs(const absl::StatusOr<std::vector<HostSlots>>& hosts) {
  std::vector<std::pair<std::string, int>> pairs;
  if (!hosts.ok()) ADD_FAILURE() << hosts.status();
  for (const HostSlots& host : hosts.value_or(std::vector<HostSlots>()))
    pairs.push_back({host.host, host.slots});
  return pairs;
}

TEST(ParseHostFile, CountsALinePerSlot) {
  EXPECT_THAT(Pairs(ParseHostFile("x3001\nx3001\nx3002\nx3001\n", "nodes")),
              ElementsAre(std::pair("x3001", 3), std::pair("x3002", 1)));
}

TEST(ParseHostFile, ReadsSlotsOfBothMpis) {
  EXPECT_THAT(Pairs(ParseHostFile("# mine\na slots = 4 max_slots =8\r\n\nb:2  # MPICH\nc\n", "hosts")),
              ElementsAre(std::pair("a", 4), std::pair("b", 2), std::pair("c", 1)));
}

TEST(ParseHostFile, NamesTheLine) {
  const std::pair<const char*, const char*> table[] = {
      {"a\nb slots=none\n", "hosts:2: expected a host"},
      {"a cores=4\n", "hosts:1: expected a host"},
      {"a:0\n", "hosts:1: expected a host"},
      {":4\n", "hosts:1: expected a host"},
      {"\n# nothing\n", "hosts: names no host"},
      {"a:2147483647\nb\na\n", "hosts:3: too many slots of a"},
  };
  for (const auto& [text, what] : table) {
    const auto hosts = ParseHostFile(text, "hosts");
    ASSERT_FALSE(hosts.ok()) << text;
    EXPECT_THAT(hosts.status().message(), HasSubstr(what));
  }
}

TEST(ReadHostFile, NamesTheFile) {
  EXPECT_THAT(ReadHostFile("/nonexistent/nodes").status().message(),
              HasSubstr("/nonexistent/nodes: No such file"));
}

}  // namespace
}  // namespace plait::comm
