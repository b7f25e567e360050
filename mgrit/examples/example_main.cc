#include "mgrit/examples/example_main.h"

#include "absl/flags/flag.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/session_main.h"

ABSL_FLAG(int, nproc, 1,
          "number of ranks to start on this machine; ignored under mpirun or another launcher");

namespace plait::mgrit::examples {

base::FlagGroup RankFlags() { return {"Ranks", {"nproc"}}; }

int RunExample(int argc, char** argv, const base::ToolUsage& usage,
               const std::function<absl::Status(comm::Session&)>& program) {
  const comm::Launcher launcher = comm::DetectLauncher();
  base::ParseFlagsOrExit(argc, argv, usage, launcher.rank);
  const int ranks = absl::GetFlag(FLAGS_nproc);
  if (ranks != 1 && launcher.kind == comm::LauncherKind::kNone) {
    return comm::RunOnRanks(ranks, argv);
  }
  return comm::RunMain(argc, argv, {}, program);
}

}  // namespace plait::mgrit::examples
