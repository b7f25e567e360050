// What a training program prints at startup: ranks, hosts, device and mesh; the same facts for its files.
//
//   const RunEnvironment environment = ReportStartup(mesh, {.strategy = "FSDP"}, log);
//   log.Info("\n\n" + comm::BulletBlock("CONFIG", entries, environment.utf8));
//   const data::RunFacts facts = FactsOf("train_gpt", seed, settings_line, environment);
#ifndef PLAIT_TOOLS_TRAINING_STARTUP_REPORT_H_
#define PLAIT_TOOLS_TRAINING_STARTUP_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/launch/dist_info.h"
#include "comm/launch/job.h"
#include "data/history/run_attributes.h"

namespace plait::training {

struct RunEnvironment {
  comm::Job job;  // combined over all ranks
  comm::DeviceChoice device;
  bool utf8 = true;
};

struct StartupOptions {
  std::string strategy;  // in capitals: "DDP"
  int gpu = -1;          // index of this rank's CUDA device; -1: CPU
};

// Collective. Logs contradictions between launcher and environment, the dist_info block, the device, the axes,
// and each rank's place in the mesh (of more than 64 ranks the first and the last 32).
RunEnvironment ReportStartup(const comm::DeviceMesh& mesh, const StartupOptions& options,
                             const base::Log& log);

// Ranks by axis, without axes of one rank: "DeviceMesh([[0, 1], [2, 3]], mesh_dim_names=('dp_shard', 'tp'))".
// Local.
std::string DeviceMeshText(const comm::DeviceMesh& mesh);

// For the files of a run. `settings`: the command line, "Namespace(...)". Local.
data::RunFacts FactsOf(const std::string& program, std::uint64_t seed, const std::string& settings,
                       const RunEnvironment& environment, const std::string& data = "");

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_STARTUP_REPORT_H_
