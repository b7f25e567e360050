#include "tools/launch_parts/running.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "comm/launch/relaunch.h"
#include "comm/launch/supervision/agent_message.h"
#include "comm/launch/supervision/rank_agent.h"

namespace plait::launching {
namespace {

std::string Item(absl::string_view name, absl::string_view value) {
  return absl::StrCat("    • ", name, "=", value, "\n");
}

}  // namespace

std::vector<std::string> PassedVariables(const char* const* environment, comm::Scheduler scheduler) {
  constexpr absl::string_view kNames[] = {"LOG_FROM_ALL_RANKS", "LOG_LEVEL", "NO_COLOR", "OMP_NUM_THREADS",
                                          "XDG_CACHE_HOME"};
  constexpr absl::string_view kPrefixes[] = {"MKL_", "NCCL_", "PLAIT_", "UCX_"};
  std::set<std::string> names = {comm::kLaunchCommandVariable, comm::kAgentVariable};
  for (; *environment != nullptr; ++environment) {
    const absl::string_view line = *environment, name = line.substr(0, line.find('='));
    const auto begins = [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); };
    const bool known = std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
                       (name == "CUDA_VISIBLE_DEVICES" && scheduler == comm::Scheduler::kLocal);
    if (known || std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins)) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

std::string Summary(const PlannedJob& job, const Surroundings& here, bool utf8) {
  std::string text = "[HOSTS]\n";
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    const int ranks = job.hosts[i].slots;
    absl::StrAppend(&text, "    • [host:", i, "] - ", job.hosts[i].host, " (", ranks,
                    ranks == 1 ? " rank)\n" : " ranks)\n");
  }
  comm::LaunchPlan without_program = job.plan;
  without_program.program.clear();
  const auto hosts = static_cast<int>(job.hosts.size());
  absl::StrAppend(&text, "\n[DIST INFO]\n", Item("NGPUS", absl::StrCat(hosts * job.devices_per_host)),
                  Item("NHOSTS", absl::StrCat(hosts)),
                  Item("NGPU_PER_HOST", absl::StrCat(job.devices_per_host)),
                  Item("HOSTFILE", job.host_file.empty() ? "none" : job.host_file),
                  Item("DIST_LAUNCH", base::ShellCommand(comm::LaunchCommand(without_program))));
  absl::StrAppend(
      &text, "\n[LAUNCH]\n", Item("SCHEDULER", NameOf(here.job.scheduler)),
      Item("STARTER", absl::StrCat(NameOf(job.plan.starter), ", ", here.starter.reason)),
      Item("RANKS", absl::StrCat(job.plan.ranks)), Item("CORES_PER_HOST", absl::StrCat(here.cores)),
      Item("BINDING",
           absl::StrCat(NameOf(job.plan.binding), job.plan.oversubscribe ? " (more ranks than cores)" : "")));
  return utf8 ? text : absl::StrReplaceAll(text, {{"•", "*"}});
}

absl::StatusOr<comm::SuperviseOptions> OptionsToRun(const Settings& settings, const PlannedJob& job) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::NotFoundError("/proc/self/exe: " + error.message());
  // The ranks write to a pseudo-terminal of their agent; what is at its end is known here.
  std::vector<std::pair<std::string, std::string>> terminal;
  if (isatty(1) == 0) terminal = {{"NO_COLOR", "1"}, {"TERM", "dumb"}};
  comm::LaunchPlan plan = job.plan;
  if (!job.this_host_only) {
    plan.passed = PassedVariables(environ, job.scheduler);
    for (const auto& [name, value] : terminal) {
      if (!absl::c_linear_search(plan.passed, name)) plan.passed.push_back(name);
    }
  }
  plan.program = {self, comm::kRankAgentArgument};
  plan.program.insert(plan.program.end(), job.plan.program.begin(), job.plan.program.end());
  comm::SuperviseOptions options = {.command = comm::LaunchCommand(plan),
                                    .environment = terminal,
                                    .ranks = plan.ranks,
                                    .this_host_only = job.this_host_only,
                                    .idle_timeout_seconds = settings.idle_timeout_seconds,
                                    .timeout_seconds = settings.timeout_seconds,
                                    .grace_seconds = settings.grace_seconds,
                                    .log_folder = settings.log_folder,
                                    .label = settings.label,
                                    .shield_launcher = plan.starter == comm::Starter::kOpenMpi};
  options.environment.emplace_back(comm::kLaunchCommandVariable,
                                   base::ShellCommand(comm::LaunchCommand(job.plan)));
  return options;
}

}  // namespace plait::launching
