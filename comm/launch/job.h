// The job that this process belongs to: rank and size, hosts, scheduler, machine.
//
//   comm::Job job = comm::DetectJob();                       // from the environment alone, before MPI starts
//   for (const std::string& line : job.contradictions) ...   // "SLURM_PROCID=2 is set, SLURM_NTASKS is not"
//   comm::CompleteJob(session.world(), comm::BuildFingerprint(revision), &job);  // job_on_ranks.h: collective
//   log.Info(comm::DistInfoBlock(job, device, utf8));        // dist_info.h
//
// Supports Open MPI, MPICH/Hydra and other PMI launchers, Cray PALS, Slurm (srun, and the shells of salloc
// and sbatch), PBS (a job's shell has hosts but no ranks), Cobalt, and RANK/WORLD_SIZE as set by torchrun.
// Inconsistencies are reported, and the more specific source wins; nothing is guessed.
#ifndef PLAIT_COMM_LAUNCH_JOB_H_
#define PLAIT_COMM_LAUNCH_JOB_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/launch/host_list.h"
#include "comm/launch/launcher.h"

namespace plait::comm {

enum class Scheduler { kLocal, kSlurm, kPbs, kCobalt };
const char* NameOf(Scheduler scheduler);  // "LOCAL", "SLURM", "PBS", "COBALT"

struct Job {
  LauncherKind launcher = LauncherKind::kNone;
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  bool size_told = true, local_told = true;  // see Launcher
  int node_id =
      0;  // index of this host in `hosts`; -1 if the environment does not tell (CompleteJob sets it)
  // Hosts of the job step, if known, else of the allocation (slots: ranks that the scheduler plans there); this host
  // alone if there is no list. In the scheduler's order and spelling; CompleteJob replaces them by the hosts that run
  // ranks, in the order of their lowest ranks.
  std::vector<HostSlots> hosts;
  int slots = 0;            // ranks that the whole allocation has room for; 0: unknown
  int allocated_nodes = 1;  // the scheduler's count, also if the hosts' names are unknown
  std::string host;         // this host's name, as it calls itself
  std::string host_file;    // PBS_NODEFILE, HOSTFILE, COBALT_NODEFILE; empty: none
  Scheduler scheduler = Scheduler::kLocal;
  std::string job_id;          // empty without a scheduler
  std::string machine;         // "Frontier", "Polaris", ..., else the host's name
  int devices_per_node = 0;    // accelerators; for no launcher those of CUDA_VISIBLE_DEVICES, if it is set
  std::string launch_command;  // as typed, words quoted for a shell; empty where it cannot be found
  std::string boot_id;         // tells hosts of the same name apart

  // One line each: what was found, where, what was expected, what to do.
  std::vector<std::string> contradictions;

  int nodes() const { return static_cast<int>(hosts.size()); }
};

// The inputs of DetectJob: ProcessJobSources() in programs, tables in tests.
struct JobSources {
  Lookup lookup;
  std::string host;  // gethostname
  std::string boot_id;
  int devices = 0;  // accelerators found on this host
  std::function<absl::StatusOr<std::vector<HostSlots>>(const std::string& path)> read_host_file;
  // Command lines of this process's parent, grandparent, ...; the launcher's is among them if it runs on this host.
  std::vector<std::vector<std::string>> ancestors;
};
JobSources ProcessJobSources();

// Local. Never fails: unreadable files and malformed variables are reported in `contradictions`.
Job DetectJob(const JobSources& sources);
Job DetectJob();

// Index of `host` in `hosts`, -1 if it is not there. Domains are ignored; an entry "localhost" matches any host.
int IndexOfHost(const std::vector<HostSlots>& hosts, const std::string& host);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_JOB_H_
