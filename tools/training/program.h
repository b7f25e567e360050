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
// Parses the flags, starts itself on --nproc ranks unless a launcher did, checks that all ranks have the same flags,
// chooses each rank's device, locks --checkpoint-dir, adopts the settings of the checkpoint that --resume names,
// creates the mesh, and calls `run` on every rank.
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

// The context of a run, on each rank.
struct Run {
  std::string program;  // "train_cnn"
  Settings& settings;
  const SettingsTable& table;
  // "Namespace(batch_size=64, ...)", with the sizes that a checkpoint or the files of a model have given by now.
  std::function<std::string()> settings_line = [] { return std::string(); };
  std::string flag_file = {};  // contents of a file for --flagfile (SettingsTable::FlagFile)
  comm::Session& session;
  const comm::Communicator& world;
  comm::DeviceMesh mesh;
  // The ranks that split a batch: along dp_replicate and dp_shard.
  comm::Communicator data;
  // The ranks whose losses sum to the loss of a batch: along pp, dp_replicate, dp_shard and cp.
  comm::Communicator losses;
  at::Device device;  // where this rank computes
  base::Log log;
  Console& console;
  RunEnvironment environment;
  std::optional<parallel::Checkpoint> checkpoint;  // to resume from
  // Whether SIGTERM, SIGHUP, SIGUSR1 and SIGINT await this program, which has to ask session.StopSignal().
  bool polls_stop_signals = false;
  int stopped = 0;  // exit code if a signal or the job's end stopped the run (StoppedBy); else 0
};

// The exit code of a run that was stopped by `signal`, or, if that is 0, by the end of the job's time.
int StoppedBy(int signal);

struct Program {
  std::string name;
  std::string summary;
  std::vector<std::string> examples = {};
  Settings& settings;
  std::function<absl::Status(Run& run)> run;
  // Opens files that give sizes of the model (--init-from) and sets these. The settings are then checked again: given
  // flags must not have changed, and sizes must suit the mesh.
  std::function<absl::Status(Run& run)> take_sizes = {};
  // Returns the entries of the CONFIG block, which is printed after ranks, device and mesh (startup_report.h). Empty:
  // nothing is printed at startup.
  std::function<std::vector<std::pair<std::string, std::string>>(const Run& run)> config_block = {};
};

// Returns the exit code. 0: success; 1: an error; 2: invalid flags; 130: stopped by SIGINT, 143: stopped by SIGTERM,
// SIGUSR1 or the end of the job's time, both with a checkpoint to resume from.
int RunProgram(int argc, char** argv, const Program& program);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_PROGRAM_H_
