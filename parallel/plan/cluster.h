// What a cluster has, as far as plans need to know: a file that people write, or that tools:plan --calibrate does.
//
//   nodes: 2
//   ranks_per_node: 8
//   memory_gigabytes_per_rank: 80
//   compute { type: "bfloat16" teraflops: 400 }      # reached in the products of training, not the peak
//   compute { type: "float32" teraflops: 50 }
//   memory_gigabytes_per_s: 3000                     # read plus written
//   within_node { gigabytes_per_s: 300 latency_us: 8 }
//   between_nodes { gigabytes_per_s: 200 latency_us: 15 }
//
//   PLAIT_ASSIGN_OR_RETURN(const Cluster cluster, ReadCluster("cluster.txt"));
//
// Protobuf's text format (cluster.proto); units are decimal. Fields with a default may be left out. Local.
#ifndef PLAIT_PARALLEL_PLAN_CLUSTER_H_
#define PLAIT_PARALLEL_PLAN_CLUSTER_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace plait::parallel {

struct Link {
  double bytes_per_second = 0;
  double latency_seconds = 0;  // of one message
};

struct Cluster {
  std::string name = "";
  int nodes = 1;
  int ranks_per_node = 1;
  // That compute. Fewer than ranks: ranks share them. Default: ranks_per_node.
  int processors_per_node = 1;
  double memory_bytes = 0;  // of a rank
  // Of the host or of disks, for what a rank offloads. Default 0: nothing can be.
  double offload_bytes = 0;
  // By element type: floating point operations per second that a rank reaches in products as training has them.
  std::map<std::string, double> flops = {};
  double memory_bandwidth = 0;  // bytes that a rank reads and writes per second
  // Bytes of activations per second that a rank computes and differentiates, beside the products: norms, activation
  // functions, softmax. Default: a fifth of memory_bandwidth (a number is written, read twice, and its gradient is
  // written and read).
  double activation_bandwidth = 0;
  // By element type, where it is not that one.
  std::map<std::string, double> activation_bandwidths = {};
  // Of a block's forward and backward, however little it has to do: calls of kernels. Default 0.
  double block_seconds = 0;
  // Whether messages travel while a rank computes. Default true; false where the processor that computes moves them.
  bool messages_overlap = true;
  Link within_node = {};    // of a rank
  Link between_nodes = {};  // of a node, shared by its ranks. Default, on one node: within_node

  int ranks() const { return nodes * ranks_per_node; }
};

// InvalidArgument, one line: "NAME:4:3: ..." where the text is no cluster, "NAME: memory_gigabytes_per_rank is
// missing; ..." for a field without default, "NAME:4: nodes is -1; expected ..." for a value that cannot be.
absl::StatusOr<Cluster> ParseCluster(const std::string& text, const std::string& name);
// And NotFound.
absl::StatusOr<Cluster> ReadCluster(const std::string& path);
// What ParseCluster reads; `comment` comes first, line by line behind '#'.
std::string ClusterText(const Cluster& cluster, const std::string& comment);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_CLUSTER_H_
