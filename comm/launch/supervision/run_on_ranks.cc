#include "comm/launch/supervision/run_on_ranks.h"

#include <errno.h>
#include <sys/resource.h>

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

// mpirun with fewer does not end with an error, it crashes and stays.
absl::Status CheckOpenFiles(int ranks) {
  constexpr rlim_t kOfMpirun = 64, kOfRank = 8;
  rlimit limit{};
  const rlim_t needed = kOfMpirun + kOfRank * static_cast<rlim_t>(ranks);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("this process may have ", limit.rlim_max, " files open; ",
                                                   ranks, " ranks need ", needed,
                                                   ": raise the limit (ulimit -n)"));
}

absl::StatusOr<int> Run(int ranks, char** argv, double grace_seconds) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> command, RelaunchCommand(ranks, argv));
  PLAIT_RETURN_IF_ERROR(CheckOpenFiles(ranks));
  base::TellRanksOfTerminal();
  absl::StatusOr<int> code =
      Supervise({.command = command,
                 .environment = {{kLaunchCommandVariable, base::ShellCommand(command)}},
                 .ranks = ranks,
                 .grace_seconds = grace_seconds,
                 .name = program_invocation_short_name,
                 .agents = false});
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
