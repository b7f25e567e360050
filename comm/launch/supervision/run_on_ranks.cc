#include "comm/launch/supervision/run_on_ranks.h"

#include <errno.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "base/text.h"
#include "comm/launch/relaunch.h"
#include "comm/launch/supervision/supervisor.h"

namespace plait::comm {
namespace {

absl::StatusOr<int> Run(int ranks, char** argv, double grace_seconds) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> command, RelaunchCommand(ranks, argv));
  base::TellRanksOfTerminal();
  absl::StatusOr<int> code =
      Supervise({.command = command,
                 .environment = {{kLaunchCommandVariable, base::ShellCommand(command)}},
                 .ranks = ranks,
                 .grace_seconds = grace_seconds,
                 .name = program_invocation_short_name,
                 .agents = false,
                 .shield_launcher = true});
  if (!absl::IsNotFound(code.status())) return code;
  return absl::NotFoundError(
      absl::StrCat(code.status().message(), "; install OpenMPI (openmpi-bin) or run on one rank"));
}

}  // namespace

int RunOnRanks(int ranks, char** argv, double grace_seconds) {
  std::fflush(nullptr);
  const absl::StatusOr<int> code = Run(ranks, argv, grace_seconds);
  if (code.ok()) return *code;
  base::WriteError(absl::StrCat(program_invocation_short_name, ": ", code.status().message()));
  return 1;
}

}  // namespace plait::comm
