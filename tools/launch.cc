// Starts a program on ranks and supervises it: tools/launch_parts/README.md.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/status_macros.h"
#include "base/terminal.h"
#include "base/text.h"
#include "comm/launch/dist_info.h"
#include "comm/launch/supervision/rank_agent.h"
#include "tools/launch_parts/planning.h"
#include "tools/launch_parts/running.h"

namespace plait::launching {
namespace {

constexpr int kUsageError = 2;

// `bazel run` starts programs in another folder; a relative path of the program is relative to the user's.
void EnterUsersFolder() {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder != nullptr && chdir(folder) != 0) std::perror("launch: BUILD_WORKING_DIRECTORY");
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "launch: %s\n", std::string(status.message()).c_str());
  return code;
}

int Run(const Settings& settings, const PlannedJob& job) {
  const std::string command = base::ShellCommand(comm::LaunchCommand(job.plan));
  std::fprintf(stderr, "launch: %s\n", command.c_str());
  base::TellRanksOfTerminal();
  const absl::StatusOr<comm::SuperviseOptions> options = OptionsToRun(settings, job);
  if (!options.ok()) return Fail(options.status(), 1);
  const absl::StatusOr<int> code = comm::Supervise(*options);
  return code.ok() ? *code : Fail(code.status(), 1);
}

int Main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == comm::kRankAgentArgument) {
    return comm::RunRankAgent(std::vector<std::string>(argv + 2, argv + argc));
  }
  EnterUsersFolder();
  const Settings settings = SettingsFromFlags(base::ParseFlagsOrExit(argc, argv, Usage()));
  const absl::StatusOr<Surroundings> here = ReadSurroundings(settings);
  if (!here.ok()) return Fail(here.status(), kUsageError);
  const absl::StatusOr<PlannedJob> job = PlanJob(settings, *here);
  if (!job.ok()) return Fail(job.status(), kUsageError);
  for (const std::string& line : here->job.contradictions)
    std::fprintf(stderr, "launch: WARNING %s\n", line.c_str());
  if (!settings.dry_run) return Run(settings, *job);
  std::printf("%s\n%s\n", Summary(*job, *here, comm::LocaleIsUtf8()).c_str(),
              base::ShellCommand(comm::LaunchCommand(job->plan)).c_str());
  return 0;
}

}  // namespace
}  // namespace plait::launching

int main(int argc, char** argv) { return plait::launching::Main(argc, argv); }
