// relaunch_program N [ARGUMENT...]: starts itself on N ranks; each prints its place and arguments, and sleeps if the
// first one is --sleep. For relaunch_test.sh.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/process_exit.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/launch/supervision/run_on_ranks.h"

int main(int argc, char** argv) {
  plait::base::PrepareExit("relaunch_program");
  const plait::comm::Launcher launcher = plait::comm::DetectLauncher();
  if (launcher.kind == plait::comm::LauncherKind::kNone) {
    return plait::comm::RunOnRanks(std::atoi(argv[1]), argv);
  }
  std::string line = "rank " + std::to_string(launcher.rank) + "/" + std::to_string(launcher.size) + ":";
  for (int i = 1; i < argc; ++i) line += std::string(" <") + argv[i] + ">";
  if (argc > 2 && std::strcmp(argv[2], "--sleep") == 0) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    sleep(10);
    return 0;
  }
  const char* threads = std::getenv("OMP_NUM_THREADS");
  std::printf("%s threads %s\n", line.c_str(), threads == nullptr ? "unset" : threads);
  const char* command = std::getenv(plait::comm::kLaunchCommandVariable);
  if (launcher.rank == 0) std::printf("command %s\n", command == nullptr ? "unset" : command);
  return 0;
}
