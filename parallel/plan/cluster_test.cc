// Files of clusters: what is read, and the line of what cannot be.
#include "parallel/plan/cluster.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"

namespace plait::parallel {
namespace {

constexpr char kText[] =
    "# two nodes\n"
    "nodes: 2\n"
    "ranks_per_node: 8\n"
    "memory_gigabytes_per_rank: 80\n"
    "compute { type: \"bfloat16\" teraflops: 400 }\n"
    "compute { type: \"float32\" teraflops: 50 }\n"
    "memory_gigabytes_per_s: 3000\n"
    "within_node { gigabytes_per_s: 300 latency_us: 8 }\n"
    "between_nodes { gigabytes_per_s: 25 latency_us: 15 }\n";

std::string ErrorOf(const std::string& from, const std::string& to) {
  const auto cluster = ParseCluster(absl::StrReplaceAll(kText, {{from, to}}), "c.txt");
  EXPECT_FALSE(cluster.ok()) << to;
  return std::string(cluster.status().message());
}

TEST(Cluster, ReadsUnitsAndDefaults) {
  const auto cluster = ParseCluster(kText, "c.txt");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->ranks(), 16);
  EXPECT_EQ(cluster->processors_per_node, 8);
  EXPECT_DOUBLE_EQ(cluster->memory_bytes, 80e9);
  EXPECT_DOUBLE_EQ(cluster->flops.at("bfloat16"), 400e12);
  EXPECT_DOUBLE_EQ(cluster->flops.at("float32"), 50e12);
  EXPECT_DOUBLE_EQ(cluster->memory_bandwidth, 3e12);
  EXPECT_DOUBLE_EQ(cluster->activation_bandwidth, 6e11);
  EXPECT_DOUBLE_EQ(cluster->between_nodes.bytes_per_second, 25e9);
  EXPECT_DOUBLE_EQ(cluster->between_nodes.latency_seconds, 15e-6);
  EXPECT_TRUE(cluster->messages_overlap);
  EXPECT_EQ(cluster->offload_bytes, 0);
}

TEST(Cluster, WritesWhatItReads) {
  const auto cluster = ParseCluster(kText, "c.txt");
  ASSERT_TRUE(cluster.ok());
  const std::string text = ClusterText(*cluster, "one\ntwo");
  EXPECT_EQ(text.substr(0, 12), "# one\n# two\n");
  const auto again = ParseCluster(text, "c.txt");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ClusterText(*again, "one\ntwo"), text);
}

TEST(Cluster, AnErrorNamesLineAndField) {
  EXPECT_EQ(ErrorOf("nodes: 2", "nodes: -1"), "c.txt:2: nodes is -1; expected at least 1");
  EXPECT_EQ(ErrorOf("nodes: 2", "nodes: two"), "c.txt:2:8: Expected integer, got: two");
  EXPECT_EQ(ErrorOf("nodes: 2\n", ""), "c.txt: nodes is missing; expected how many there are");
  EXPECT_EQ(ErrorOf("ranks_per_node: 8", "rank_per_node: 8").substr(0, 69),
            "c.txt:3: no field \"rank_per_node\"; did you mean ranks_per_node? There");
  EXPECT_EQ(ErrorOf("per_rank: 80", "per_rank: 0"),
            "c.txt:4: memory_gigabytes_per_rank is 0; expected a positive number");
  EXPECT_EQ(ErrorOf("\"float32\"", "\"fp32\""),
            "c.txt:6: compute.type is \"fp32\"; expected float32, float64, bfloat16, float16");
  EXPECT_EQ(ErrorOf("\"float32\"", "\"bfloat16\""),
            "c.txt:6: compute.type is \"bfloat16\" again; expected each type once");
  EXPECT_EQ(ErrorOf("latency_us: 8", "latency_us: -8"),
            "c.txt:8: within_node.latency_us is -8; expected 0 or more");
  EXPECT_EQ(ErrorOf("gigabytes_per_s: 25 ", ""),
            "c.txt: between_nodes.gigabytes_per_s is missing; expected the bytes per second of a message");
  EXPECT_EQ(ErrorOf("between_nodes {", "host_memory {").substr(0, 31), "c.txt:9: no field \"host_memory\"");
}

TEST(Cluster, AFileThatIsNotThereIsNamed) {
  EXPECT_EQ(ReadCluster("/nowhere/c.txt").status().message(), "/nowhere/c.txt: cannot be read");
}

}  // namespace
}  // namespace plait::parallel
