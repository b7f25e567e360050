#include "tools/launch_parts/planning.h"

#include <netdb.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "comm/launch/relaunch.h"

namespace plait::launching {
namespace {

using comm::Binding;
using comm::HostSlots;
using comm::Starter;

absl::Status Wrong(absl::string_view text) { return absl::InvalidArgumentError(text); }

std::string Names(const std::vector<HostSlots>& hosts) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(hosts.size(), kShown); ++i) names.push_back(hosts[i].host);
  if (hosts.size() > kShown) names.push_back("...");
  return absl::StrJoin(names, ",");
}

bool IsThisHost(const std::string& host, const comm::Job& job) {
  return host == "localhost" || absl::StartsWith(host, "127.") ||
         comm::IndexOfHost({{.host = host}}, job.host) == 0;
}

absl::Status CheckSurroundings(const Surroundings& here) {
  const comm::Job& job = here.job;
  if (job.launcher != comm::LauncherKind::kNone) {
    return Wrong(absl::StrCat("it was itself started by ", NameOf(job.launcher), ", as rank ", job.rank,
                              " of ", job.size, "; start it once, outside"));
  }
  if (job.scheduler == comm::Scheduler::kLocal || job.contradictions.empty()) return absl::OkStatus();
  return Wrong(absl::StrCat("this ", NameOf(job.scheduler), " job's environment cannot be trusted: ",
                            absl::StrJoin(job.contradictions, "; ")));
}

// As execvp would: a name without slash is looked for on the PATH.
absl::Status CheckProgram(const std::vector<std::string>& program) {
  if (program.empty())
    return Wrong("no program; write it behind two dashes: launch -- PROGRAM [ARGUMENT ...]");
  const std::string& name = program[0];
  std::error_code error;
  const auto runs = [&error](const std::string& path) {
    return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (absl::StrContains(name, '/')) {
    if (runs(name)) return absl::OkStatus();
    const bool there = std::filesystem::exists(name, error);
    return absl::NotFoundError(absl::StrCat("cannot start ", name, ": ",
                                            there ? "it is no executable file; chmod +x makes a script one"
                                                  : "there is no such file; build it or correct the path"));
  }
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    if (runs(absl::StrCat(folder.empty() ? "." : folder, "/", name))) return absl::OkStatus();
  }
  const bool here = runs("./" + name);
  return absl::NotFoundError(
      absl::StrCat("cannot start ", name, ": it is not on the PATH",
                   here ? absl::StrCat("; write ./", name, " for the one in this folder") : ""));
}

absl::Status CheckKnown(const std::string& file, const std::string& host, const Surroundings& here) {
  if (IsThisHost(host, here.job) || here.resolves(host)) return absl::OkStatus();
  return Wrong(
      absl::StrCat(file, ": no host is known by the name ", host, "; correct it or add it to /etc/hosts"));
}

absl::Status CheckHost(const std::string& file, const std::string& host, const Surroundings& here) {
  const comm::Job& job = here.job;
  if (job.scheduler != comm::Scheduler::kLocal && comm::IndexOfHost(job.hosts, host) < 0) {
    return Wrong(absl::StrCat(file, ": host ", host, " is not one of this ", NameOf(job.scheduler),
                              " job's (", Names(job.hosts), ")"));
  }
  return job.scheduler == comm::Scheduler::kLocal ? CheckKnown(file, host, here) : absl::OkStatus();
}

// Hosts of the file, else of the job, else this host, with a slot for each accelerator or core.
absl::StatusOr<std::vector<HostSlots>> AllHosts(const Settings& settings, const Surroundings& here) {
  const int room = here.job.devices_per_node > 0 ? here.job.devices_per_node : here.cores;
  std::vector<HostSlots> hosts = here.job.hosts;
  if (!settings.host_file.empty()) {
    PLAIT_ASSIGN_OR_RETURN(hosts, comm::ReadHostFile(settings.host_file));
    for (const HostSlots& host : hosts) PLAIT_RETURN_IF_ERROR(CheckHost(settings.host_file, host.host, here));
    return hosts;
  }
  // mpirun would start the ranks on the job's hosts, and not as they are planned here.
  if (!here.unread_scheduler.empty() && here.job.host_file.empty()) {
    return Wrong(
        absl::StrCat("the hosts of a job of ", here.unread_scheduler,
                     " are not read; write them into a file, one a line as NAME slots=N, and give it as "
                     "--hostfile=FILE"));
  }
  if (here.job.scheduler == comm::Scheduler::kPbs || here.job.scheduler == comm::Scheduler::kCobalt) {
    for (const HostSlots& host : hosts)
      PLAIT_RETURN_IF_ERROR(CheckKnown(here.job.host_file, host.host, here));
  }
  const bool counts_mean_ranks = here.job.scheduler != comm::Scheduler::kLocal || !here.job.host_file.empty();
  for (HostSlots& host : hosts) {
    if (!counts_mean_ranks || here.job.devices_per_node > 0) host.slots = room;
  }
  return hosts;
}

// How many ranks, on which of the hosts.
struct Layout {
  std::vector<HostSlots> hosts;  // with as many slots as ranks
  int ranks = 0;
};

absl::Status CheckCounts(const Settings& wanted, std::size_t there) {
  if (wanted.nhosts > static_cast<int>(there)) {
    return Wrong(absl::StrCat("--nhosts=", wanted.nhosts, ": there ", there == 1 ? "is " : "are ", there,
                              there == 1 ? " host" : " hosts"));
  }
  const int hosts = wanted.nhosts > 0 ? wanted.nhosts : static_cast<int>(there);
  if (wanted.nproc > 0 && wanted.ppn > 0 && wanted.nproc > wanted.ppn * hosts) {
    return Wrong(absl::StrCat("--nproc=", wanted.nproc, " with --ppn=", wanted.ppn, ": ", hosts,
                              hosts == 1 ? " host takes " : " hosts take ", wanted.ppn * hosts));
  }
  if (wanted.nproc > 0 && wanted.nhosts > wanted.nproc) {
    return Wrong(
        absl::StrCat("--nproc=", wanted.nproc, " with --nhosts=", wanted.nhosts, ": a host has no rank"));
  }
  return absl::OkStatus();
}

// Of all hosts together.
std::int64_t Slots(const std::vector<HostSlots>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), std::int64_t{0},
                         [](std::int64_t sum, const HostSlots& host) { return sum + host.slots; });
}

// No host has more than one rank more than another.
void DistributeEvenly(int ranks, std::vector<HostSlots>& hosts) {
  const int nodes = static_cast<int>(hosts.size());
  for (int i = 0; i < nodes; ++i)
    hosts[static_cast<std::size_t>(i)].slots = ranks / nodes + (i < ranks % nodes ? 1 : 0);
}

absl::StatusOr<Layout> LayOut(const Settings& wanted, std::vector<HostSlots> hosts) {
  PLAIT_RETURN_IF_ERROR(CheckCounts(wanted, hosts.size()));
  if (wanted.nhosts > 0) hosts.resize(static_cast<std::size_t>(wanted.nhosts));
  if (wanted.ppn > 0) {
    for (HostSlots& host : hosts) host.slots = wanted.ppn;
  } else if (wanted.nproc > 0 && wanted.nhosts > 0) {
    DistributeEvenly(wanted.nproc, hosts);
  }
  const std::int64_t room = Slots(hosts);
  if (wanted.nproc == 0 && room > std::numeric_limits<int>::max()) {
    return Wrong(absl::StrCat("the hosts have ", room, " slots together, more ranks than can be counted"));
  }
  Layout layout{.hosts = {}, .ranks = wanted.nproc > 0 ? wanted.nproc : static_cast<int>(room)};
  if (layout.ranks > room) DistributeEvenly(layout.ranks, hosts);
  for (int left = layout.ranks; HostSlots host : hosts) {
    if (left == 0 || host.slots == 0) break;
    host.slots = std::min(host.slots, left);
    left -= host.slots;
    layout.hosts.push_back(host);
  }
  return layout;
}

int MostOnAHost(const std::vector<HostSlots>& hosts) {
  return std::max_element(hosts.begin(), hosts.end(),
                          [](const HostSlots& a, const HostSlots& b) { return a.slots < b.slots; })
      ->slots;
}

// Only the last host may have fewer ranks than the others where a number per host says how many each has.
bool AreEqual(const std::vector<HostSlots>& hosts) {
  return std::all_of(hosts.begin(), hosts.end() - 1,
                     [&](const HostSlots& host) { return host.slots == hosts[0].slots; }) &&
         hosts.back().slots <= hosts[0].slots;
}

// How mpirun and Hydra are told how many ranks a host has. Slurm and PALS have no other way than a number per host.
void ChooseMapping(const Layout& layout, comm::LaunchPlan* plan) {
  const bool takes_slots = plan->starter == Starter::kOpenMpi || plan->starter == Starter::kHydra;
  if (takes_slots && !AreEqual(layout.hosts)) {
    plan->by_slots = true;
  } else if (layout.hosts.size() > 1 || plan->starter == Starter::kPals) {
    plan->ranks_per_node = MostOnAHost(layout.hosts);
  }
}

// Whether a host has more ranks than mpirun gives it slots, which are the job's.
bool ExceedsSlots(const Layout& layout, const comm::Job& job) {
  if (job.scheduler != comm::Scheduler::kSlurm) return false;
  return std::any_of(layout.hosts.begin(), layout.hosts.end(), [&](const HostSlots& host) {
    const int found = comm::IndexOfHost(job.hosts, host.host);
    return found >= 0 && host.slots > job.hosts[static_cast<std::size_t>(found)].slots;
  });
}

absl::Status ChooseBinding(const Settings& settings, const Surroundings& here, int on_a_host,
                           comm::LaunchPlan* plan) {
  const int cores = here.cores;
  plan->cores_per_rank = std::max(1, cores / on_a_host);
  plan->cpus_per_rank = std::max(1, std::max(here.slurm_cpus, cores) / on_a_host);
  plan->oversubscribe = on_a_host > cores;
  if (settings.bind == "auto") {
    const Binding tight = plan->cores_per_rank > 1 ? Binding::kDepth : Binding::kCore;
    plan->binding = plan->oversubscribe ? Binding::kNone : tight;
    return absl::OkStatus();
  }
  const absl::StatusOr<Binding> binding = comm::ParseBinding(settings.bind);
  if (!binding.ok()) return Wrong(absl::StrCat("--bind: ", binding.status().message(), ", auto"));
  plan->binding = *binding;
  if (!plan->oversubscribe || *binding == Binding::kNone) return absl::OkStatus();
  return Wrong(absl::StrCat("--bind=", settings.bind, ": ", on_a_host, " ranks share ", cores,
                            cores == 1 ? " core" : " cores", " of a host; leave --bind out"));
}

bool SameSlots(const HostSlots& a, const HostSlots& b) { return a.slots == b.slots; }

// Whether the host file can be passed on as it is: it is in the starter's format and has exactly the hosts that run
// ranks; for mpirun, which takes no more ranks than slots, as many slots as ranks.
bool FileSuits(const std::string& path, Starter starter, const Layout& layout,
               const std::vector<HostSlots>& in_file) {
  if (starter == Starter::kSrun || layout.hosts.size() != in_file.size()) return false;
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const bool slots = absl::StrContains(text, "slots"), colon = absl::StrContains(text, ':');
  if (starter == Starter::kOpenMpi) {
    return slots && !colon &&
           std::equal(layout.hosts.begin(), layout.hosts.end(), in_file.begin(), SameSlots);
  }
  return !slots && (starter == Starter::kHydra || !colon);
}

// Names the hosts in the command unless the starter would choose the same ones by itself.
void NameHosts(const Settings& settings, const std::vector<HostSlots>& there, const Layout& layout,
               const comm::Job& found, PlannedJob* job) {
  const std::string& file = settings.host_file.empty() ? found.host_file : settings.host_file;
  if (!file.empty() && FileSuits(file, job->plan.starter, layout, there)) {
    job->plan.host_file = job->host_file = file;
    return;
  }
  const bool fills_job =
      layout.hosts.size() == there.size() &&
      (!job->plan.by_slots || std::equal(layout.hosts.begin(), layout.hosts.end(), there.begin(), SameSlots));
  const bool whole_job =
      settings.host_file.empty() && fills_job && found.scheduler == comm::Scheduler::kSlurm;
  const bool no_choice = settings.host_file.empty() && found.scheduler == comm::Scheduler::kLocal;
  if (!whole_job && !(job->this_host_only && no_choice)) job->plan.hosts = layout.hosts;
}

// Physical cores that have these hardware threads.
int CoresOf(const cpu_set_t& threads) {
  std::vector<std::string> cores;  // each as the list of its hardware threads
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &threads)) continue;
    std::ifstream file(absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    std::string siblings = absl::StrCat(cpu);
    file >> siblings;
    cores.push_back(siblings);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return std::max(1, static_cast<int>(cores.size()));
}

// Slurm may count hardware threads: those that this process may use, or all of the machine, say how many cores they are.
int CoresOfSlurm(int cpus) {
  cpu_set_t usable, all;
  CPU_ZERO(&usable);
  CPU_ZERO(&all);
  for (long cpu = 0; cpu < std::min<long>(sysconf(_SC_NPROCESSORS_CONF), CPU_SETSIZE); ++cpu)
    CPU_SET(cpu, &all);
  const bool are_ours = sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) == cpus;
  return std::min(cpus, CoresOf(are_ours ? usable : all));
}

}  // namespace

int UsableCores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  return CoresOf(usable);
}

int AllocatedCores(const char* per_node, int otherwise) {
  const absl::StatusOr<std::vector<int>> counts =
      comm::ExpandSlurmCounts(per_node == nullptr ? "" : per_node);
  if (!counts.ok() || counts->empty()) return otherwise;
  return std::max(1, *std::min_element(counts->begin(), counts->end()));
}

std::string UnreadScheduler(const comm::Lookup& lookup) {
  if (lookup("PE_HOSTFILE") != nullptr) return "Grid Engine";
  return lookup("LSB_JOBID") != nullptr ? "LSF" : "";
}

absl::StatusOr<Surroundings> ReadSurroundings(const Settings& settings) {
  Surroundings here;
  here.job = comm::DetectJob();
  const comm::Commands commands = comm::ProcessCommands();
  const bool in_slurm = here.job.scheduler == comm::Scheduler::kSlurm;
  PLAIT_ASSIGN_OR_RETURN(here.starter, settings.starter == "auto"
                                           ? comm::FindStarter(in_slurm, commands)
                                           : comm::FindStarterNamed(settings.starter, commands));
  if (here.job.scheduler == comm::Scheduler::kLocal)
    here.unread_scheduler = UnreadScheduler(comm::ProcessEnvironment());
  const bool in_pbs = here.job.scheduler == comm::Scheduler::kPbs;
  here.cores = AllocatedCores(in_slurm ? std::getenv("SLURM_JOB_CPUS_PER_NODE")
                              : in_pbs ? std::getenv("NCPUS")
                                       : nullptr,
                              UsableCores());
  if (in_slurm) here.slurm_cpus = here.cores;
  if (in_slurm && comm::IndexOfHost(here.job.hosts, here.job.host) >= 0)
    here.cores = CoresOfSlurm(here.cores);
  here.as_root = geteuid() == 0;
  here.threads_set = std::getenv("OMP_NUM_THREADS") != nullptr;
  here.resolves = [](const std::string& host) {
    addrinfo* found = nullptr;
    const bool known = getaddrinfo(host.c_str(), nullptr, nullptr, &found) == 0;
    if (known) freeaddrinfo(found);
    return known;
  };
  return here;
}

absl::StatusOr<PlannedJob> PlanJob(const Settings& settings, const Surroundings& here) {
  const bool needs_program = !settings.dry_run || !settings.program.empty();
  if (needs_program) PLAIT_RETURN_IF_ERROR(CheckProgram(settings.program));
  PLAIT_RETURN_IF_ERROR(CheckSurroundings(here));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<HostSlots> hosts, AllHosts(settings, here));
  PLAIT_ASSIGN_OR_RETURN(const Layout layout, LayOut(settings, hosts));
  PlannedJob job;
  job.hosts = layout.hosts;
  job.scheduler = here.job.scheduler;
  job.devices_per_host = here.job.devices_per_node;
  job.this_host_only = layout.hosts.size() == 1 && IsThisHost(layout.hosts[0].host, here.job);
  if (job.this_host_only) PLAIT_RETURN_IF_ERROR(comm::CheckRanksOfHost(layout.ranks));
  comm::LaunchPlan& plan = job.plan;
  plan = {.starter = here.starter.starter,
          .executable = here.starter.executable,
          .ranks = layout.ranks,
          .as_root = here.as_root,
          .mpi_plugin = here.starter.mpi_plugin,
          .program = needs_program ? settings.program : std::vector<std::string>{"PROGRAM"}};
  const int on_a_host = MostOnAHost(layout.hosts);
  ChooseMapping(layout, &plan);
  PLAIT_RETURN_IF_ERROR(ChooseBinding(settings, here, on_a_host, &plan));
  if (plan.starter == Starter::kOpenMpi && ExceedsSlots(layout, here.job)) plan.oversubscribe = true;
  NameHosts(settings, hosts, layout, here.job, &job);
  // A bound rank's cores say how many threads are right.
  if (plan.binding == Binding::kNone && !here.threads_set) {
    plan.environment = {{"OMP_NUM_THREADS", absl::StrCat(plan.cores_per_rank)}};
  }
  return job;
}

}  // namespace plait::launching
