#include "tools/launch_parts/summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace plait::launching {
namespace {

std::string Item(absl::string_view name, absl::string_view value) {
  return absl::StrCat("    • ", name, "=", value, "\n");
}

}  // namespace

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
                  Item("DIST_LAUNCH", comm::PrintableCommand(comm::LaunchCommand(without_program))));
  absl::StrAppend(
      &text, "\n[LAUNCH]\n", Item("SCHEDULER", NameOf(here.job.scheduler)),
      Item("STARTER", absl::StrCat(NameOf(job.plan.starter), ", ", here.starter.reason)),
      Item("RANKS", absl::StrCat(job.plan.ranks)), Item("CORES_PER_HOST", absl::StrCat(here.cores)),
      Item("BINDING",
           absl::StrCat(NameOf(job.plan.binding), job.plan.oversubscribe ? " (more ranks than cores)" : "")));
  return utf8 ? text : absl::StrReplaceAll(text, {{"•", "*"}});
}

}  // namespace plait::launching
