// Times a layer with a mixture of experts on several ranks: tools/moe_bench/README.md.
#include <algorithm>
#include <cstdio>
#include <string>

#include "base/keep_freed_memory.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/session_main.h"
#include "tools/moe_bench/config.h"
#include "tools/moe_bench/placement_table.h"
#include "tools/moe_bench/run.h"

namespace plait::moe_bench {
namespace {

constexpr int kUsageError = 2;
constexpr int kTableRanks = 4;

int Fail(const absl::Status& status, int rank, int code) {
  if (rank == 0) std::fprintf(stderr, "bench_moe: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  const absl::StatusOr<Config> config = ReadConfig(argc, argv, rank);
  if (!config.ok()) return Fail(config.status(), rank, kUsageError);
  if (config->placement_table) {
    const int ranks = std::max(config->world, config->nproc);
    const absl::StatusOr<std::string> table = PlacementTable(*config, ranks > 0 ? ranks : kTableRanks);
    if (!table.ok()) return Fail(table.status(), rank, kUsageError);
    if (rank == 0) std::fputs(table->c_str(), stdout);
    return 0;
  }
  const absl::StatusOr<int> ranks = CheckedRanks(*config, launcher);
  if (!ranks.ok()) return Fail(ranks.status(), rank, kUsageError);
  if (!launcher.starts_mpi() && *ranks > 1) return comm::RunOnRanks(*ranks, argv);
  base::KeepFreedMemory();
  return comm::RunMain(argc, argv, {}, [&](comm::Session& session) { return Run(*config, session); });
}

}  // namespace
}  // namespace plait::moe_bench

int main(int argc, char** argv) { return plait::moe_bench::Main(argc, argv); }
