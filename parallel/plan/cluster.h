// Description of a cluster for planning: a file, written by hand or by tools:plan --calibrate.
//
//   nodes: 2
//   ranks_per_node: 8
//   memory_gigabytes_per_rank: 80
//   compute { type: "bfloat16" teraflops: 400 }      # achieved in the products of training, not the peak
//   compute { type: "float32" teraflops: 50 }
//   memory_gigabytes_per_s: 3000                     # reads plus writes
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
  double latency_seconds = 0;  // per message
};

struct Cluster {
  std::string name = "";
  int nodes = 1;
  int ranks_per_node = 1;
  // Accelerators or cores. If there are fewer than ranks, ranks share them. Default: ranks_per_node.
  int processors_per_node = 1;
  double memory_bytes = 0;  // per rank
  // Host memory or disk space per rank for offloading. Default 0: no offloading.
  double offload_bytes = 0;
  // By element type: FLOP/s that a rank achieves in the matrix products of training.
  std::map<std::string, double> flops = {};
  double memory_bandwidth = 0;  // bytes that a rank reads and writes per second
  // Bytes of activations per second in the forward and backward of everything but matrix products: norms, activation
  // functions, softmax. Default: a fifth of memory_bandwidth (an element is written, read twice, and its gradient is
  // written and read).
  double activation_bandwidth = 0;
  // Overrides by element type.
  std::map<std::string, double> activation_bandwidths = {};
  // Fixed cost of a block's forward and backward: kernel launches. Default 0.
  double block_seconds = 0;
  // Whether communication overlaps with computation. Default true; false if the processors that compute also copy the
  // messages.
  bool messages_overlap = true;
  Link within_node = {};    // per rank
  Link between_nodes = {};  // per node, shared by its ranks. Default, on one node: within_node

  int ranks() const { return nodes * ranks_per_node; }
};

// INVALID_ARGUMENT, one line: "NAME:4:3: ..." for a syntax error, "NAME: memory_gigabytes_per_rank is missing; ..." for
// a missing field without default, "NAME:4: nodes is -1; expected ..." for an invalid value.
absl::StatusOr<Cluster> ParseCluster(const std::string& text, const std::string& name);
// As ParseCluster; NOT_FOUND if the file cannot be read.
absl::StatusOr<Cluster> ReadCluster(const std::string& path);
// The inverse of ParseCluster, to four digits. Begins with `comment`, each line of it after '#'.
std::string ClusterText(const Cluster& cluster, const std::string& comment);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_CLUSTER_H_
