// What a training program reports first: where it runs and on what; the same for the files that it writes.
//
//   const RunEnvironment environment = ReportStartup(mesh, {.strategy = "FSDP"}, log);
//   log.Info("\n\n" + comm::BulletBlock("CONFIG", entries, environment.utf8));
//   const data::RunFacts facts = FactsOf({.program = "train_gpt", .seed = seed, .settings = flags},
//   environment);
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
  comm::Job job;  // as all ranks know it together
  comm::DeviceChoice device;
  bool utf8 = true;
};

struct StartupOptions {
  std::string strategy;    // in capitals: "DDP"
  int gpu = -1;            // index of this rank's CUDA device; -1: CPU
  bool log_levels = true;  // who logs, and how to hear all ranks
};

// Collective. Prints contradictions of the launch, dist_info, device, axes, and each rank's place in the
// mesh, of more than 64 ranks the first and the last 32.
RunEnvironment ReportStartup(const comm::DeviceMesh& mesh, const StartupOptions& options,
                             const base::Log& log);

// Of the program, for its files. Local.
struct ProgramFacts {
  std::string program;   // "train_gpt"
  std::uint64_t seed;    // of the run
  std::string settings;  // the command line, "Namespace(...)"
};
data::RunFacts FactsOf(const ProgramFacts& facts, const RunEnvironment& environment);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_STARTUP_REPORT_H_
