// Tests a cluster with a small data-parallel training: tools/dist_test/README.md.
#include <cstdio>
#include <string>

#include "base/keep_freed_memory.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/session_main.h"
#include "tools/dist_test/config.h"
#include "tools/dist_test/run.h"
#include "tools/training/mesh.h"

namespace plait::dist_test {
namespace {

constexpr int kUsageError = 2;

int Fail(const absl::Status& status, int rank, int code) {
  if (rank == 0) std::fprintf(stderr, "test_dist: %s\n", std::string(status.message()).c_str());
  return code;
}

// The number of ranks that the run will have, after checking the mesh for it.
absl::StatusOr<int> CheckedRanks(const Config& config, const comm::Launcher& launcher) {
  PLAIT_ASSIGN_OR_RETURN(const int ranks,
                         training::RanksOfRun(config.nproc, config.mesh, launcher, base::UsableProcessors()));
  PLAIT_RETURN_IF_ERROR(MeshAxes(config, ranks).status());
  return ranks;
}

int Main(int argc, char** argv) {
  base::Profile profile("main");
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  const absl::StatusOr<Config> config = ReadConfig(argc, argv, rank);
  if (!config.ok()) return Fail(config.status(), rank, kUsageError);
  const absl::StatusOr<int> ranks = CheckedRanks(*config, launcher);
  if (!ranks.ok()) return Fail(ranks.status(), rank, kUsageError);
  if (!launcher.starts_mpi() && *ranks > 1) return comm::RunOnRanks(*ranks, argv);
  base::KeepFreedMemory();
  const comm::SessionOptions options = {.step_timeout_seconds = config->timeout_seconds,
                                        .device_backend = comm::NcclBackendFactory()};
  return comm::RunMain(argc, argv, options,
                       [&](comm::Session& session) { return Run(*config, session, profile); });
}

}  // namespace
}  // namespace plait::dist_test

int main(int argc, char** argv) { return plait::dist_test::Main(argc, argv); }
