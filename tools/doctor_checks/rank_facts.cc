#include "tools/doctor_checks/rank_facts.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/check.h"

namespace plait::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, rank, size, local_size, host, boot_id, mpi_library,
                                   mpi_launcher, launcher_kind, resolved_address, clock_offset_seconds,
                                   clock_uncertainty_seconds, memory_available_bytes, open_files_limit,
                                   shared_memory_bytes, cores, host_cores, omp_num_threads, folder_free_bytes,
                                   devices, driver_error, nccl_version, built_with_cuda, has_gnuplot, utf8)

void CountHostCores(std::vector<RankFacts>& ranks) {
  std::map<std::pair<std::string, std::string>, std::set<int>> cores;
  const auto host = [](const RankFacts& rank) { return std::pair(rank.host, rank.boot_id); };
  for (const RankFacts& rank : ranks) cores[host(rank)].insert(rank.cores.begin(), rank.cores.end());
  for (RankFacts& rank : ranks) rank.host_cores = static_cast<int>(cores[host(rank)].size());
}

std::string ToText(const RankFacts& facts) {
  return nlohmann::json(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankFacts FromText(absl::string_view text) {
  const nlohmann::json json =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  PLAIT_CHECK(json.is_object());
  return json.get<RankFacts>();
}

}  // namespace plait::doctor
