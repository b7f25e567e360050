#include "comm/launch/job.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "comm/launch/job_check.h"
#include "comm/launch/launch_ancestor.h"
#include "comm/launch/machine_name.h"

namespace plait::comm {
namespace {

const char* FirstOf(const Lookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = lookup(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

int NumberOf(const Lookup& lookup, std::initializer_list<const char*> names, int otherwise) {
  const char* text = FirstOf(lookup, names);
  int number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) && number >= 0 ? number : otherwise;
}

void ReadLauncher(const Lookup& lookup, Job& job) {
  const Launcher launcher = DetectLauncher(lookup);
  job.launcher = launcher.kind;
  job.rank = launcher.rank;
  job.size = launcher.size;
  job.local_rank = launcher.local_rank;
  job.local_size = launcher.local_size;
  job.size_told = launcher.size_told;
  job.local_told = launcher.local_told;
}

void ReadScheduler(const Lookup& lookup, Job& job) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return FirstOf(lookup, names) != nullptr;
  };
  if (has({"SLURM_JOB_ID", "SLURM_JOBID"})) {
    job.scheduler = Scheduler::kSlurm;
    job.job_id = FirstOf(lookup, {"SLURM_JOB_ID", "SLURM_JOBID"});
  } else if (has({"PBS_JOBID", "PBS_NODEFILE"})) {
    job.scheduler = Scheduler::kPbs;
    if (has({"PBS_JOBID"})) job.job_id = FirstOf(lookup, {"PBS_JOBID"});
  } else if (has({"COBALT_JOBID", "COBALT_NODEFILE"})) {
    job.scheduler = Scheduler::kCobalt;
    if (has({"COBALT_JOBID"})) job.job_id = FirstOf(lookup, {"COBALT_JOBID"});
  }
}

std::vector<HostSlots> SlurmHosts(const JobSources& sources, bool step, Job& job) {
  const char* list = FirstOf(sources.lookup, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  // Under mpirun the step is that of its daemons, with one task on each host; a shell of srun's is a step of its own.
  const bool daemons = !step && InSlurmStep(sources.lookup);
  const char* counts = daemons ? nullptr : FirstOf(sources.lookup, {"SLURM_TASKS_PER_NODE"});
  if (step && FirstOf(sources.lookup, {"SLURM_STEP_NODELIST"}) != nullptr) {
    list = FirstOf(sources.lookup, {"SLURM_STEP_NODELIST"});
    counts = FirstOf(sources.lookup, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  }
  if (list == nullptr) return {};
  const auto names = ExpandSlurmHosts(list);
  if (!names.ok()) {
    job.contradictions.push_back(
        absl::StrCat(names.status().message(), "; repair SLURM_JOB_NODELIST or unset SLURM_*"));
    return {};
  }
  std::vector<HostSlots> hosts;
  for (const std::string& name : *names) hosts.push_back({.host = name, .slots = 1});
  const auto slots = ExpandSlurmCounts(counts == nullptr ? "" : counts);
  for (std::size_t i = 0; slots.ok() && i < std::min(hosts.size(), slots->size()); ++i) {
    hosts[i].slots = (*slots)[i];
  }
  return hosts;
}

// The hosts of the file that `variable` names, if it is set. A node file of PBS often exists on the first node
// only: its absence elsewhere is not an error.
std::vector<HostSlots> FileHosts(const JobSources& sources, const char* variable, Job& job) {
  const char* path = FirstOf(sources.lookup, {variable});
  if (path == nullptr) return {};
  job.host_file = path;
  const auto hosts = sources.read_host_file(path);
  if (hosts.ok()) return *hosts;
  const bool own = absl::string_view(variable) == "HOSTFILE";
  if (own || job.launcher == LauncherKind::kNone || !absl::IsNotFound(hosts.status())) {
    job.contradictions.push_back(
        absl::StrCat(variable, ": ", hosts.status().message(),
                     "; expected the job's hosts, one a line; write the file or unset ", variable));
  }
  return {};
}

std::vector<HostSlots> SchedulersHosts(const JobSources& sources, Job& job) {
  switch (job.scheduler) {
    case Scheduler::kSlurm:
      return SlurmHosts(sources, job.launcher == LauncherKind::kSlurm, job);
    case Scheduler::kPbs:
      return FileHosts(sources, "PBS_NODEFILE", job);
    case Scheduler::kCobalt:
      return FileHosts(sources, "COBALT_NODEFILE", job);
    case Scheduler::kLocal:
      break;
  }
  return {};
}

// A host file of the user's selects from the scheduler's hosts.
std::vector<HostSlots> ReadHosts(const JobSources& sources, Job& job) {
  std::vector<HostSlots> allocated = SchedulersHosts(sources, job);
  const std::string schedulers_file = job.host_file;
  std::vector<HostSlots> selected = FileHosts(sources, "HOSTFILE", job);
  if (selected.empty()) {
    job.host_file = schedulers_file;
    return allocated;
  }
  if (CheckSelectedHosts(job.host_file, selected, allocated, job)) return selected;
  job.host_file = schedulers_file;
  return allocated;
}

void ReadNodes(const JobSources& sources, const std::vector<HostSlots>& hosts, Job& job) {
  const Lookup& lookup = sources.lookup;
  const auto slots =
      std::accumulate(hosts.begin(), hosts.end(), std::int64_t{0},
                      [](std::int64_t sum, const HostSlots& host) { return sum + host.slots; });
  job.slots = static_cast<int>(std::min<std::int64_t>(slots, std::numeric_limits<int>::max()));
  if (job.launcher == LauncherKind::kOpenMpi && job.scheduler != Scheduler::kLocal) {
    job.slots = NumberOf(lookup, {"OMPI_UNIVERSE_SIZE"}, job.slots);
  }
  const bool slurm = job.scheduler == Scheduler::kSlurm;
  const int listed = std::max<int>(1, static_cast<int>(hosts.size()));
  if (slurm) {
    job.allocated_nodes = NumberOf(lookup, {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}, listed);
  } else {
    const bool open_mpi = job.launcher == LauncherKind::kOpenMpi && hosts.empty();
    job.allocated_nodes = open_mpi ? NumberOf(lookup, {"OMPI_MCA_orte_num_nodes"}, listed) : listed;
  }
  job.hosts = hosts;
  if (hosts.empty()) job.hosts = {{.host = job.host, .slots = job.local_size}};
}

int NodeId(const JobSources& sources, bool listed, const Job& job) {
  for (const LauncherTrace& trace : TracesOfLaunchers(sources.lookup)) {
    if (trace.kind == job.launcher && trace.node_id.has_value()) return *trace.node_id;
  }
  if (!listed) return job.local_size == job.size && job.allocated_nodes == 1 ? 0 : -1;
  // Slurm may know this host by another name than it has itself.
  const char* slurms = sources.lookup("SLURMD_NODENAME");
  const int by_slurm = slurms == nullptr ? -1 : IndexOfHost(job.hosts, slurms);
  return by_slurm >= 0 ? by_slurm : IndexOfHost(job.hosts, job.host);
}

// As CUDA reads CUDA_VISIBLE_DEVICES: what follows an invalid entry does not count.
int VisibleDevices(const JobSources& sources) {
  const char* visible = sources.lookup("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return sources.devices;
  int entries = 0;
  for (const absl::string_view entry : absl::StrSplit(visible, ',')) {
    if (entry.empty() || entry == "-1" || entry == "NoDevFiles") break;
    ++entries;
  }
  return std::min(sources.devices, entries);
}

// A launcher may show each rank its own device only.
int DevicesPerNode(const JobSources& sources, LauncherKind launcher) {
  return NumberOf(sources.lookup, {"NGPU_PER_HOST", "SLURM_GPUS_ON_NODE"},
                  launcher == LauncherKind::kNone ? VisibleDevices(sources) : sources.devices);
}

std::string LaunchCommand(const JobSources& sources, LauncherKind launcher) {
  const char* given = FirstOf(sources.lookup, {"PLAIT_LAUNCH_COMMAND"});
  if (given != nullptr) return given;
  return launcher == LauncherKind::kNone ? "" : CommandOfLauncher(sources.ancestors);
}

absl::string_view ShortName(absl::string_view host) {
  // An address has no domain.
  if (!host.empty() && absl::ascii_isdigit(host[0]) && host.find_first_not_of("0123456789.") == host.npos) {
    return host;
  }
  return host.substr(0, host.find('.'));
}

}  // namespace

const char* NameOf(Scheduler scheduler) {
  switch (scheduler) {
    case Scheduler::kSlurm:
      return "SLURM";
    case Scheduler::kPbs:
      return "PBS";
    case Scheduler::kCobalt:
      return "COBALT";
    case Scheduler::kLocal:
      break;
  }
  return "LOCAL";
}

int IndexOfHost(const std::vector<HostSlots>& hosts, const std::string& host) {
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& entry) {
    return entry.host == "localhost" || ShortName(entry.host) == ShortName(host);
  });
  return found == hosts.end() ? -1 : static_cast<int>(found - hosts.begin());
}

Job DetectJob(const JobSources& sources) {
  Job job;
  job.host = sources.host;
  job.boot_id = sources.boot_id;
  ReadLauncher(sources.lookup, job);
  ReadScheduler(sources.lookup, job);
  const std::vector<HostSlots> hosts = ReadHosts(sources, job);
  ReadNodes(sources, hosts, job);
  job.node_id = NodeId(sources, !hosts.empty(), job);
  job.machine = MachineName(sources.lookup, job.host);
  job.devices_per_node = DevicesPerNode(sources, job.launcher);
  job.launch_command = LaunchCommand(sources, job.launcher);
  CheckLaunchers(sources.lookup, job);
  CheckScheduler(sources, !hosts.empty(), job);
  return job;
}

Job DetectJob() { return DetectJob(ProcessJobSources()); }

}  // namespace plait::comm
