#include "comm/launch/job_check.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::comm {
namespace {

bool Has(const Lookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value != nullptr && *value != '\0';
}

std::string Assignment(const Lookup& lookup, const std::string& name) {
  return absl::StrCat(name, "=", lookup(name.c_str()));
}

// "start the program with srun (Slurm) or unset SLURM_PROCID"
std::string StartOrUnset(const LauncherTrace& trace) {
  const std::string& variable = trace.has_rank ? trace.rank_variable : trace.size_variable;
  return absl::StrCat("start the program with ", NameOf(trace.kind), " or unset ", variable);
}

void CheckHalf(const Lookup& lookup, const LauncherTrace& trace, Job& job) {
  const bool slurm = trace.kind == LauncherKind::kSlurm;
  // Shells of salloc and sbatch have some of a step's variables, but no step; those of srun have all.
  const bool shell = InSlurmStep(lookup) ? trace.complete() : job.scheduler == Scheduler::kSlurm;
  if (slurm && shell) return;
  const std::string& present = trace.has_rank ? trace.rank_variable : trace.size_variable;
  std::string missing = trace.has_rank ? trace.size_variable : trace.rank_variable;
  if (trace.has_rank && trace.has_size) missing = "SLURM_STEP_ID";
  job.contradictions.push_back(absl::StrCat(Assignment(lookup, present), " is set, ", missing,
                                            " is not: half of what ", NameOf(trace.kind), " sets; ",
                                            StartOrUnset(trace)));
}

void CheckRanges(const Lookup& lookup, const LauncherTrace& trace, Job& job) {
  const int rank = *trace.rank, size = *trace.size;
  if (!trace.size_derived && (size < 1 || rank < 0 || rank >= size)) {
    const std::string expected = size < 1 ? std::string("expected a size of at least 1")
                                          : absl::StrCat("expected a rank from 0 to ", size - 1);
    job.contradictions.push_back(absl::StrCat(Assignment(lookup, trace.rank_variable), " with ",
                                              Assignment(lookup, trace.size_variable), ": ", expected, "; ",
                                              StartOrUnset(trace)));
    return;
  }
  const int local_size = trace.local_size.value_or(size), local_rank = trace.local_rank.value_or(0);
  if (local_size < 1 || local_size > size || local_rank < 0 || local_rank >= local_size) {
    job.contradictions.push_back(absl::StrCat(
        NameOf(trace.kind), ": local rank ", local_rank, " of ", local_size, " on this host with ", size,
        " ranks in all; expected local rank < local size <= size; start the program with ",
        NameOf(trace.kind), " alone"));
  }
}

// Launchers one inside the other, or variables left over. A step of Slurm's is often that of a daemon (mpirun
// and Hydra start theirs so): it counts only against torchrun's variables, which describe the same processes.
void CheckAgreement(const Lookup& lookup, const LauncherTrace& chosen, const LauncherTrace& other, Job& job) {
  const bool same_size = chosen.size_derived || chosen.size == other.size;
  if (other.kind == LauncherKind::kSlurm || (chosen.rank == other.rank && same_size)) return;
  job.contradictions.push_back(absl::StrCat(
      Assignment(lookup, chosen.rank_variable), " of ", *chosen.size, " (", NameOf(chosen.kind), ") but ",
      Assignment(lookup, other.rank_variable), " of ", *other.size, " (", NameOf(other.kind),
      "): expected the same rank and size; start the program with one "
      "launcher and unset the other's variables"));
}

// (A program of Open MPI that MPICH started sets PMIX_RANK itself, as the only rank that it knows.)
void CheckPmix(const Lookup& lookup, Job& job) {
  int rank = 0;
  const bool speaks_pmix = job.launcher == LauncherKind::kOpenMpi || job.launcher == LauncherKind::kPals ||
                           job.launcher == LauncherKind::kSlurm;
  if (!speaks_pmix || !Has(lookup, "PMIX_RANK")) return;
  if (absl::SimpleAtoi(lookup("PMIX_RANK"), &rank) && rank == job.rank) return;
  job.contradictions.push_back(absl::StrCat(Assignment(lookup, "PMIX_RANK"), " but rank ", job.rank, " from ",
                                            NameOf(job.launcher),
                                            ": expected the same; start the program with one launcher"));
}

void CheckEqual(const Lookup& lookup, const std::string& what, int count, const char* variable, Job& job) {
  int expected = 0;
  if (!Has(lookup, variable)) return;
  if (!absl::SimpleAtoi(lookup(variable), &expected)) {
    job.contradictions.push_back(absl::StrCat(Assignment(lookup, variable),
                                              ": expected an integer; start the program again with srun"));
  } else if (count != expected) {
    job.contradictions.push_back(
        absl::StrCat(what, " but ", Assignment(lookup, variable),
                     ": expected the same number; unset SLURM_* or start the job again"));
  }
}

// One scope of Slurm's variables: the job's or the step's.
struct SlurmScope {
  const char* hosts;
  const char* nodes;
  const char* counts;
  const char* tasks;
};

void CheckScope(const Lookup& lookup, const SlurmScope& scope, Job& job) {
  int nodes = -1;
  if (Has(lookup, scope.hosts)) {
    const auto hosts = ExpandSlurmHosts(lookup(scope.hosts));
    // A list that cannot be read has been reported.
    if (!hosts.ok()) return;
    nodes = static_cast<int>(hosts->size());
    CheckEqual(lookup, absl::StrCat(Assignment(lookup, scope.hosts), " names ", nodes, " hosts"), nodes,
               scope.nodes, job);
  }
  if (!Has(lookup, scope.counts)) return;
  const auto counts = ExpandSlurmCounts(lookup(scope.counts));
  const std::string given = Assignment(lookup, scope.counts);
  if (!counts.ok()) {
    job.contradictions.push_back(
        absl::StrCat(scope.counts, ": ", counts.status().message(), "; start the job again"));
    return;
  }
  const int counted = static_cast<int>(counts->size());
  if (nodes >= 0 && counted != nodes) {
    job.contradictions.push_back(absl::StrCat(given, " counts ", counted, " hosts, ", scope.hosts, " names ",
                                              nodes,
                                              ": expected the same; unset SLURM_* or start the job again"));
  }
  if (scope.tasks == nullptr) return;
  const int tasks = std::accumulate(counts->begin(), counts->end(), 0);
  CheckEqual(lookup, absl::StrCat(given, " sums to ", tasks, " tasks"), tasks, scope.tasks, job);
}

void CheckSlurm(const Lookup& lookup, Job& job) {
  if (!Has(lookup, "SLURM_JOB_NODELIST") && !Has(lookup, "SLURM_NODELIST")) {
    job.contradictions.push_back(absl::StrCat(
        "SLURM_JOB_ID=", job.job_id,
        " is set, SLURM_JOB_NODELIST is not: half a Slurm environment; start the job with salloc, "
        "sbatch or srun, or unset SLURM_JOB_ID"));
  }
  CheckScope(lookup, {"SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "", nullptr}, job);
  if (!InSlurmStep(lookup)) {
    CheckScope(lookup, {"SLURM_NODELIST", "SLURM_NNODES", "SLURM_TASKS_PER_NODE", nullptr}, job);
    return;
  }
  CheckScope(
      lookup,
      {"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"},
      job);
  int tasks = 0;
  if (job.launcher == LauncherKind::kSlurm && Has(lookup, "SLURM_NTASKS") &&
      absl::SimpleAtoi(lookup("SLURM_NTASKS"), &tasks)) {
    CheckEqual(lookup, Assignment(lookup, "SLURM_NTASKS"), tasks, "SLURM_STEP_NUM_TASKS", job);
  }
}

// Checks that the step's host list and SLURM_NODEID agree about this host, if both are known.
void CheckNodeId(const JobSources& sources, Job& job) {
  const char* name = sources.lookup("SLURMD_NODENAME");
  const int listed = IndexOfHost(job.hosts, name != nullptr ? name : job.host);
  if (listed < 0 || job.node_id < 0 || listed == job.node_id) return;
  job.contradictions.push_back(absl::StrCat(NameOf(job.launcher), " calls this host node ", job.node_id,
                                            ", the list of hosts has ", job.hosts[listed].host, " as node ",
                                            listed, ": expected the same; start the program again with ",
                                            NameOf(job.launcher)));
}

void CheckOwnHost(const JobSources& sources, Job& job) {
  const char* slurms = sources.lookup("SLURMD_NODENAME");
  if (job.launcher == LauncherKind::kNone || IndexOfHost(job.hosts, job.host) >= 0) return;
  if (slurms != nullptr && IndexOfHost(job.hosts, slurms) >= 0) return;
  job.contradictions.push_back(
      absl::StrCat("rank ", job.rank, " runs on ", job.host, ", which is not among the ", job.nodes(),
                   " hosts of the job (", job.hosts.front().host,
                   ", ...); give the launcher the job's own hosts or unset the list"));
}

}  // namespace

void CheckLaunchers(const Lookup& lookup, Job& job) {
  std::vector<LauncherTrace> complete;
  for (const LauncherTrace& trace : TracesOfLaunchers(lookup)) {
    const bool of_ranks = trace.kind != LauncherKind::kSlurm || IsRankOfSrun(lookup);
    if (!trace.malformed.empty()) {
      job.contradictions.push_back(
          absl::StrCat(trace.malformed, ": expected an integer; ", StartOrUnset(trace)));
    } else if (trace.complete() && of_ranks) {
      CheckRanges(lookup, trace, job);
      complete.push_back(trace);
    } else if (job.launcher == LauncherKind::kNone || job.launcher == trace.kind) {
      CheckHalf(lookup, trace, job);
    }
  }
  const auto chosen = std::find_if(complete.begin(), complete.end(),
                                   [&](const LauncherTrace& trace) { return trace.kind == job.launcher; });
  for (const LauncherTrace& other : complete) {
    if (chosen != complete.end()) CheckAgreement(lookup, *chosen, other, job);
  }
  CheckPmix(lookup, job);
}

void CheckScheduler(const JobSources& sources, bool listed, Job& job) {
  const Lookup& lookup = sources.lookup;
  if (job.scheduler == Scheduler::kSlurm) {
    if (Has(lookup, "PBS_JOBID")) {
      job.contradictions.push_back(absl::StrCat(
          "SLURM_JOB_ID=", job.job_id, " and ", Assignment(lookup, "PBS_JOBID"),
          " are both set: expected one scheduler; Slurm's is taken, unset the variables of the other job"));
    }
    CheckSlurm(lookup, job);
  }
  if (job.scheduler == Scheduler::kPbs && !Has(lookup, "PBS_NODEFILE") &&
      job.launcher == LauncherKind::kNone) {
    job.contradictions.push_back(absl::StrCat(
        "PBS_JOBID=", job.job_id,
        " is set, PBS_NODEFILE is not: half a PBS environment; start from the job's own shell or set "
        "PBS_NODEFILE"));
  }
  if (!listed) return;
  CheckOwnHost(sources, job);
  if (job.launcher == LauncherKind::kSlurm) CheckNodeId(sources, job);
}

bool CheckSelectedHosts(const std::string& file, const std::vector<HostSlots>& selected,
                        const std::vector<HostSlots>& allocated, Job& job) {
  std::vector<std::string> unknown;
  for (const HostSlots& host : selected) {
    if (!allocated.empty() && IndexOfHost(allocated, host.host) < 0) unknown.push_back(host.host);
  }
  if (unknown.empty()) return true;
  job.contradictions.push_back(absl::StrCat("HOSTFILE=", file, " names ", absl::StrJoin(unknown, ", "),
                                            ", which ", NameOf(job.scheduler), " has not given to job ",
                                            job.job_id, "; remove them from the file or unset HOSTFILE"));
  return false;
}

}  // namespace plait::comm
