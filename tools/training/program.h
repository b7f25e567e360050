// The main of a training program.
//
//   int main(int argc, char** argv) {
//     CnnSettings settings;
//     return training::RunProgram(argc, argv,
//                                 {.name = "train_cnn",
//                                  .summary = "Trains a convolutional network.",
//                                  .settings = settings,
//                                  .run = [&](training::Run& run) { return Train(settings, run); }});
//   }
//
// Parses the flags, starts itself on --nproc ranks where no launcher did, checks that all ranks have the same
// flags, chooses the device of every rank, locks --checkpoint-dir, takes over the settings of the checkpoint
// that --resume means, makes the mesh, and calls `run` on every rank.
#ifndef PLAIT_TOOLS_TRAINING_PROGRAM_H_
#define PLAIT_TOOLS_TRAINING_PROGRAM_H_

#include <c10/core/Device.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/session.h"
#include "parallel/checkpoint/checkpoint.h"
#include "tools/training/console.h"
#include "tools/training/settings.h"
#include "tools/training/startup_report.h"

namespace plait::training {

// What a run is made of, on each rank.
struct Run {
  std::string program;  // "train_cnn"
  Settings& settings;
  const SettingsTable& table;
  std::string settings_line;   // "Namespace(batch_size=64, ...)"
  std::string flag_file = {};  // the same as a file for --flagfile (SettingsTable::FlagFile)
  comm::Session& session;
  const comm::Communicator& world;
  comm::DeviceMesh mesh;
  // The ranks that split a batch: those that differ along dp_replicate and dp_shard.
  comm::Communicator data;
  // The ranks whose losses add up to that of a batch: also the stages of pp and the parts of sequences of cp.
  comm::Communicator losses;
  at::Device device;  // where this rank computes
  base::Log log;
  Console& console;
  RunEnvironment environment;
  std::optional<parallel::Checkpoint> checkpoint;  // to resume from
  int stopped = 0;                                 // by a signal or the job's end: what RunProgram returns
};

struct Program {
  std::string name;
  std::string summary;
  std::vector<std::string> examples = {};
  Settings& settings;
  std::function<absl::Status(Run& run)> run;
  // Prints what was started where, mesh and settings, and the lines of this block. Empty: prints nothing.
  std::function<std::vector<std::pair<std::string, std::string>>(const Run& run)> config_block = {};
};

// The exit code: 0; 1: an error; 2: wrong flags; stopped, with a checkpoint to resume from: 130 by SIGINT, otherwise
// (SIGTERM, SIGUSR1, the end of the job's time) 143.
int RunProgram(int argc, char** argv, const Program& program);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_PROGRAM_H_
