// The text that describes a cluster to tools:plan; one that is written and read again is the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "parallel/plan/cluster.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto cluster =
      plait::parallel::ParseCluster(std::string(plait::fuzz::TextOf(data, size)), "cluster.txt");
  if (!cluster.ok()) return 0;
  const auto again =
      plait::parallel::ParseCluster(plait::parallel::ClusterText(*cluster, "again"), "again.txt");
  PLAIT_CHECK_OK(again.status());
  PLAIT_CHECK(again->name == cluster->name && again->nodes == cluster->nodes &&
              again->ranks_per_node == cluster->ranks_per_node);
  return 0;
}
