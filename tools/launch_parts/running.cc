#include "tools/launch_parts/running.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "comm/launch/relaunch.h"
#include "comm/launch/supervision/agent_message.h"
#include "comm/launch/supervision/rank_agent.h"

namespace plait::launching {

absl::StatusOr<comm::SuperviseOptions> OptionsToRun(const Settings& settings, const PlannedJob& job) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::NotFoundError("/proc/self/exe: " + error.message());
  comm::LaunchPlan plan = job.plan;
  if (!job.this_host_only) plan.passed = {comm::kLaunchCommandVariable, comm::kAgentVariable};
  plan.program = {self, comm::kRankAgentArgument};
  plan.program.insert(plan.program.end(), job.plan.program.begin(), job.plan.program.end());
  comm::SuperviseOptions options = {.command = comm::LaunchCommand(plan),
                                    .ranks = plan.ranks,
                                    .this_host_only = job.this_host_only,
                                    .idle_timeout_seconds = settings.idle_timeout_seconds,
                                    .timeout_seconds = settings.timeout_seconds,
                                    .grace_seconds = settings.grace_seconds,
                                    .log_folder = settings.log_folder,
                                    .label = settings.label};
  options.environment = {
      {comm::kLaunchCommandVariable, comm::PrintableCommand(comm::LaunchCommand(job.plan))}};
  // The ranks write to a pseudo-terminal of their agent; what is at its end is known here.
  if (isatty(1) == 0)
    options.environment.insert(options.environment.end(), {{"TERM", "dumb"}, {"NO_COLOR", "1"}});
  return options;
}

}  // namespace plait::launching
