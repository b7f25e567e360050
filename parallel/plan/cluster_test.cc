// Cluster files: values that are read, and error messages.
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

TEST(Cluster, WritesAnyName) {
  auto cluster = ParseCluster(kText, "c.txt");
  ASSERT_TRUE(cluster.ok());
  for (const char* name :
       {"the \"old\" one", "C:\\hosts", "one\ntwo", "it's", "\xc3\xa9t\xc3\xa9", "\\\xc3\xa9"}) {
    cluster->name = name;
    const auto again = ParseCluster(ClusterText(*cluster, ""), "c.txt");
    ASSERT_TRUE(again.ok()) << name << ": " << again.status();
    EXPECT_EQ(again->name, name);
  }
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

// Each field by a value of its own, and back.
TEST(Cluster, ReadsEveryField) {
  const std::string text =
      "name: \"n\"\nnodes: 3\nranks_per_node: 5\nprocessors_per_node: 4\nmemory_gigabytes_per_rank: 7\n"
      "offload_gigabytes_per_rank: 11\ncompute { type: \"float16\" teraflops: 13 activation_gigabytes_per_s: "
      "17 "
      "}\ncompute { type: \"float64\" teraflops: 19 }\nmemory_gigabytes_per_s: 23\n"
      "activation_gigabytes_per_s: 29\nblock_us: 31\nmessages_overlap: false\n"
      "within_node { gigabytes_per_s: 37 latency_us: 41 }\nbetween_nodes { gigabytes_per_s: 43 latency_us: "
      "47 }\n";
  const auto cluster = ParseCluster(text, "c.txt");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->name, "n");
  EXPECT_EQ(cluster->nodes, 3);
  EXPECT_EQ(cluster->ranks_per_node, 5);
  EXPECT_EQ(cluster->processors_per_node, 4);
  EXPECT_DOUBLE_EQ(cluster->memory_bytes, 7e9);
  EXPECT_DOUBLE_EQ(cluster->offload_bytes, 11e9);
  EXPECT_DOUBLE_EQ(cluster->flops.at("float16"), 13e12);
  EXPECT_DOUBLE_EQ(cluster->flops.at("float64"), 19e12);
  EXPECT_EQ(cluster->flops.size(), 2u);
  EXPECT_DOUBLE_EQ(cluster->activation_bandwidths.at("float16"), 17e9);
  EXPECT_EQ(cluster->activation_bandwidths.size(), 1u);
  EXPECT_DOUBLE_EQ(cluster->memory_bandwidth, 23e9);
  EXPECT_DOUBLE_EQ(cluster->activation_bandwidth, 29e9);
  EXPECT_DOUBLE_EQ(cluster->block_seconds, 31e-6);
  EXPECT_FALSE(cluster->messages_overlap);
  EXPECT_DOUBLE_EQ(cluster->within_node.bytes_per_second, 37e9);
  EXPECT_DOUBLE_EQ(cluster->within_node.latency_seconds, 41e-6);
  EXPECT_DOUBLE_EQ(cluster->between_nodes.bytes_per_second, 43e9);
  EXPECT_DOUBLE_EQ(cluster->between_nodes.latency_seconds, 47e-6);
  // Types in order of their names.
  EXPECT_EQ(ClusterText(*cluster, ""), text);
}

// Links that are left out: of one rank on a node, of one node.
TEST(Cluster, ALinkThatIsNotThereIsTheOther) {
  const auto one_node = ParseCluster(
      "nodes: 1 ranks_per_node: 2 memory_gigabytes_per_rank: 1 compute { type: \"float32\" teraflops: 1 } "
      "memory_gigabytes_per_s: 1 within_node { gigabytes_per_s: 2 latency_us: 3 }",
      "c.txt");
  ASSERT_TRUE(one_node.ok()) << one_node.status();
  EXPECT_DOUBLE_EQ(one_node->between_nodes.bytes_per_second, 2e9);
  const auto one_rank = ParseCluster(
      "nodes: 2 ranks_per_node: 1 memory_gigabytes_per_rank: 1 compute { type: \"float32\" teraflops: 1 } "
      "memory_gigabytes_per_s: 1 between_nodes { gigabytes_per_s: 2 latency_us: 3 }",
      "c.txt");
  ASSERT_TRUE(one_rank.ok()) << one_rank.status();
  EXPECT_DOUBLE_EQ(one_rank->within_node.latency_seconds, 3e-6);
}

TEST(Cluster, EveryFieldIsChecked) {
  EXPECT_EQ(ErrorOf("ranks_per_node: 8", "ranks_per_node: 0"),
            "c.txt:3: ranks_per_node is 0; expected at least 1");
  EXPECT_EQ(ErrorOf("ranks_per_node: 8\n", ""),
            "c.txt: ranks_per_node is missing; expected the accelerators of a node, or its cores");
  EXPECT_EQ(ErrorOf("# two nodes", "processors_per_node: 0"),
            "c.txt:1: processors_per_node is 0; expected at least 1");
  EXPECT_EQ(ErrorOf("# two nodes", "offload_gigabytes_per_rank: -1"),
            "c.txt:1: offload_gigabytes_per_rank is -1; expected 0 or more");
  EXPECT_EQ(ErrorOf("# two nodes", "activation_gigabytes_per_s: -1"),
            "c.txt:1: activation_gigabytes_per_s is -1; expected 0 or more");
  EXPECT_EQ(ErrorOf("# two nodes", "block_us: -1"), "c.txt:1: block_us is -1; expected 0 or more");
  EXPECT_EQ(ErrorOf("memory_gigabytes_per_rank: 80\n", ""),
            "c.txt: memory_gigabytes_per_rank is missing; expected what a rank can allocate");
  EXPECT_EQ(
      ErrorOf("memory_gigabytes_per_s: 3000\n", ""),
      "c.txt: memory_gigabytes_per_s is missing; expected bytes that a rank reads and writes per second");
  EXPECT_EQ(ErrorOf("memory_gigabytes_per_s: 3000", "memory_gigabytes_per_s: 0"),
            "c.txt:7: memory_gigabytes_per_s is 0; expected a positive number");
  EXPECT_EQ(ErrorOf("teraflops: 400", "teraflops: inf"),
            "c.txt:5: compute.teraflops is inf; expected a positive number");
  EXPECT_EQ(ErrorOf("teraflops: 400", "teraflops: 400 activation_gigabytes_per_s: -1"),
            "c.txt:5: compute.activation_gigabytes_per_s is -1; expected 0 or more");
  EXPECT_EQ(ErrorOf("gigabytes_per_s: 300 ", "gigabytes_per_s: 0 "),
            "c.txt:8: within_node.gigabytes_per_s is 0; expected a positive number");
  EXPECT_EQ(ErrorOf("within_node { gigabytes_per_s: 300 latency_us: 8 }\n", ""),
            "c.txt: within_node is missing; expected a link, for several ranks on a node");
  EXPECT_EQ(ErrorOf("between_nodes { gigabytes_per_s: 25 latency_us: 15 }\n", ""),
            "c.txt: between_nodes is missing; expected a link, for several nodes");
  EXPECT_NE(ParseCluster("nodes: 1 ranks_per_node: 1 memory_gigabytes_per_rank: 1 memory_gigabytes_per_s: 1",
                         "c.txt")
                .status()
                .message()
                .find("compute is missing"),
            std::string::npos);
}

TEST(Cluster, AFileThatIsNotThereIsNamed) {
  EXPECT_EQ(ReadCluster("/nowhere/c.txt").status().message(), "/nowhere/c.txt: cannot be read");
}

}  // namespace
}  // namespace plait::parallel
