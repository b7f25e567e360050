#include "comm/mpi/cores.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

namespace plait::comm {
namespace {

constexpr int kNoLimit = 1 << 30;

int CoresFor(double quota, double period) {
  return quota > 0 && period > 0 ? std::max(static_cast<int>(std::ceil(quota / period)), 1) : kNoLimit;
}

double NumberIn(const std::string& path) {
  double number = 0;
  std::ifstream(path) >> number;
  return number;
}

// The group's own path, "0::/a/b" in /proc/self/cgroup; "" in the root group.
std::string GroupPath(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line.size() > 4 ? line.substr(3) : "";
  }
  return "";
}

}  // namespace

CoreSet UsableCores() {
  CoreSet cores{};
  if (sched_getaffinity(0, sizeof cores, reinterpret_cast<cpu_set_t*>(cores.data())) != 0) cores = {1};
  return cores;
}

int CountOf(const CoreSet& cores) {
  int count = 0;
  for (const std::uint64_t word : cores) count += std::popcount(word);
  return count;
}

int CoreQuota(const std::string& root) {
  const std::string groups = root + "/sys/fs/cgroup";
  int cores =
      CoresFor(NumberIn(groups + "/cpu/cpu.cfs_quota_us"), NumberIn(groups + "/cpu/cpu.cfs_period_us"));
  for (std::string path = GroupPath(root);; path.erase(path.rfind('/'))) {
    std::ifstream file(groups + path + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period) cores = std::min(cores, CoresFor(quota, period));  // "max 100000": no limit
    if (path.empty()) return cores;
  }
}

}  // namespace plait::comm
