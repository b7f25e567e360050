// What this process runs on: its place among the ranks, the hosts, the scheduler, the machine.
//
//   comm::Job job = comm::DetectJob();                       // from the environment alone, before MPI starts
//   for (const std::string& line : job.contradictions) ...   // "SLURM_PROCID=2 is set, SLURM_NTASKS is not"
//   comm::CompleteJob(session.world(), revision, &job);      // job_on_ranks.h: what the ranks see
//   log.Info(comm::DistInfoBlock(job, device, utf8));        // dist_info.h
//
// Read are Open MPI, MPICH/Hydra and other PMI launchers, Cray PALS, Slurm (srun, and the shells of salloc
// and sbatch), PBS (a job's shell has hosts but no ranks), Cobalt, and RANK/WORLD_SIZE as torchrun sets them.
// What does not fit together is reported, and the more specific source is believed; nothing is guessed.
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
      0;  // index of this host in `hosts`; -1 where the environment does not tell (CompleteJob does)
  // Hosts of the step, if a launcher started this process and its hosts are known, else of the allocation
  // (slots: ranks that the scheduler means to run there); this host alone if there is no list. At first as
  // the scheduler orders and spells them; CompleteJob leaves those that run ranks, by their lowest rank.
  std::vector<HostSlots> hosts;
  int slots = 0;            // ranks that the whole allocation has room for; 0: not known
  int allocated_nodes = 1;  // the scheduler's count, also where the hosts' names are not known
  std::string host;         // this host's name, as it calls itself
  std::string host_file;    // PBS_NODEFILE, HOSTFILE, COBALT_NODEFILE; empty: none
  Scheduler scheduler = Scheduler::kLocal;
  std::string job_id;          // empty without scheduler
  std::string machine;         // "Frontier", "Polaris", ..., else the host's name
  int devices_per_node = 0;    // accelerators
  std::string launch_command;  // as typed, words quoted for a shell; empty where it cannot be found
  std::string boot_id;         // differs between hosts that have the same name

  // Each a line: what, where it was found, what was expected, what to do.
  std::vector<std::string> contradictions;

  int nodes() const { return static_cast<int>(hosts.size()); }
};

// Where DetectJob looks: the process's own surroundings in programs, tables in tests.
struct JobSources {
  Lookup lookup;
  std::string host;  // gethostname
  std::string boot_id;
  int devices = 0;  // accelerators found on this host
  std::function<absl::StatusOr<std::vector<HostSlots>>(const std::string& path)> read_host_file;
  // Command lines of this process's parent, its parent, ...; one is the launcher's, if it is on this host.
  std::vector<std::vector<std::string>> ancestors;
};
JobSources ProcessJobSources();

// Local. Never fails: what cannot be read is among the contradictions.
Job DetectJob(const JobSources& sources);
Job DetectJob();

// Index of `host` in `hosts`, -1 if it is not there. Names match with or without their domain; "localhost"
// is any host.
int IndexOfHost(const std::vector<HostSlots>& hosts, const std::string& host);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_JOB_H_
