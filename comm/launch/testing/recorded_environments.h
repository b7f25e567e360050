// Environments as launchers and schedulers set them, for tests: one VARIABLE=value a line. Open MPI 4.1.4,
// MPICH 4.0.2's Hydra and Slurm 22.05 (two nodes) were recorded; host names are changed, addresses and variables that
// do not concern the job are omitted. PBS Pro, PALS and torchrun are taken from their manuals.
#ifndef PLAIT_COMM_LAUNCH_TESTING_RECORDED_ENVIRONMENTS_H_
#define PLAIT_COMM_LAUNCH_TESTING_RECORDED_ENVIRONMENTS_H_

#include <map>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "comm/launch/launcher.h"

namespace plait::comm::testing {

// mpirun -n 2, rank 1.
inline constexpr absl::string_view kOpenMpi = R"(
HOME=/home/ada
LANG=C.UTF-8
OMPI_APP_CTX_NUM_PROCS=2
OMPI_COMMAND=train
OMPI_COMM_WORLD_LOCAL_RANK=1
OMPI_COMM_WORLD_LOCAL_SIZE=2
OMPI_COMM_WORLD_NODE_RANK=1
OMPI_COMM_WORLD_RANK=1
OMPI_COMM_WORLD_SIZE=2
OMPI_FILE_LOCATION=/tmp/ompi.desk.1000/pid.28108/0/0
OMPI_FIRST_RANKS=0
OMPI_MCA_ess=^singleton
OMPI_MCA_ess_base_jobid=20054017
OMPI_MCA_ess_base_vpid=1
OMPI_MCA_orte_bound_at_launch=1
OMPI_MCA_orte_ess_node_rank=1
OMPI_MCA_orte_ess_num_procs=2
OMPI_MCA_orte_launch=1
OMPI_MCA_orte_num_nodes=1
OMPI_MCA_orte_tmpdir_base=/tmp
OMPI_MCA_pmix=^s1,s2,cray,isolated
OMPI_NUM_APP_CTX=1
OMPI_UNIVERSE_SIZE=2
PMIX_GDS_MODULE=ds21,ds12,hash
PMIX_HOSTNAME=desk
PMIX_ID=20054017.1
PMIX_NAMESPACE=20054017
PMIX_RANK=1
PMIX_SECURITY_MODE=native
PMIX_VERSION=4.2.2rc2
)";

// mpiexec.hydra -n 2, rank 1.
inline constexpr absl::string_view kHydra = R"(
GFORTRAN_UNBUFFERED_PRECONNECTED=y
HOME=/home/ada
HYDI_CONTROL_FD=7
MPIR_CVAR_CH3_INTERFACE_HOSTNAME=desk
MPI_LOCALNRANKS=2
MPI_LOCALRANKID=1
PMI_FD=8
PMI_RANK=1
PMI_SIZE=2
)";

// srun -n 3 -N 2, rank 2, the only one on its node.
inline constexpr absl::string_view kSrun = R"(
PMI_FD=11
PMI_JOBID=1.0
PMI_RANK=2
PMI_SIZE=3
SLURMD_NODENAME=frontier002
SLURM_CLUSTER_NAME=frontier
SLURM_CPUS_ON_NODE=1
SLURM_GTIDS=2
SLURM_JOBID=1
SLURM_JOB_CPUS_PER_NODE=2,1
SLURM_JOB_ID=1
SLURM_JOB_NAME=train
SLURM_JOB_NODELIST=frontier[001-002]
SLURM_JOB_NUM_NODES=2
SLURM_JOB_PARTITION=all
SLURM_JOB_USER=ada
SLURM_LOCALID=0
SLURM_MPI_TYPE=pmi2
SLURM_NNODES=2
SLURM_NODEID=1
SLURM_NODELIST=frontier[001-002]
SLURM_NPROCS=3
SLURM_NTASKS=3
SLURM_PRIO_PROCESS=0
SLURM_PROCID=2
SLURM_STEPID=0
SLURM_STEP_ID=0
SLURM_STEP_LAUNCHER_PORT=41091
SLURM_STEP_NODELIST=frontier[001-002]
SLURM_STEP_NUM_NODES=2
SLURM_STEP_NUM_TASKS=3
SLURM_STEP_RESV_PORTS=18001-18003
SLURM_STEP_TASKS_PER_NODE=2,1
SLURM_SUBMIT_DIR=/home/ada
SLURM_SUBMIT_HOST=login1
SLURM_TASKS_PER_NODE=2,1
SLURM_TASK_PID=1477
SLURM_UMASK=0022
SRUN_DEBUG=3
)";

// srun -n 1 -w frontier002 within a job of two nodes.
inline constexpr absl::string_view kSrunOnOneOfTwo = R"(
PMI_FD=11
PMI_JOBID=2.0
PMI_RANK=0
PMI_SIZE=1
SLURMD_NODENAME=frontier002
SLURM_CLUSTER_NAME=frontier
SLURM_GTIDS=0
SLURM_JOBID=2
SLURM_JOB_CPUS_PER_NODE=2,1
SLURM_JOB_ID=2
SLURM_JOB_NODELIST=frontier[001-002]
SLURM_JOB_NUM_NODES=2
SLURM_LOCALID=0
SLURM_NNODES=1
SLURM_NODEID=0
SLURM_NODELIST=frontier[001-002]
SLURM_NPROCS=1
SLURM_NTASKS=1
SLURM_PROCID=0
SLURM_STEPID=0
SLURM_STEP_ID=0
SLURM_STEP_NODELIST=frontier002
SLURM_STEP_NUM_NODES=1
SLURM_STEP_NUM_TASKS=1
SLURM_STEP_TASKS_PER_NODE=1
SLURM_TASKS_PER_NODE=1
)";

// The shell of sbatch -n 3 -N 2.
inline constexpr absl::string_view kSbatchShell = R"(
SLURMD_NODENAME=frontier001
SLURM_CLUSTER_NAME=frontier
SLURM_CPUS_ON_NODE=2
SLURM_GTIDS=0
SLURM_JOBID=2
SLURM_JOB_CPUS_PER_NODE=2,1
SLURM_JOB_ID=2
SLURM_JOB_NODELIST=frontier[001-002]
SLURM_JOB_NUM_NODES=2
SLURM_LOCALID=0
SLURM_NNODES=2
SLURM_NODEID=0
SLURM_NODELIST=frontier[001-002]
SLURM_NODE_ALIASES=(null)
SLURM_NPROCS=3
SLURM_NTASKS=3
SLURM_PROCID=0
SLURM_SUBMIT_HOST=login1
SLURM_TASKS_PER_NODE=2,1
SLURM_TASK_PID=1578
)";

// The same of sbatch -N 2: without a number of tasks.
inline constexpr absl::string_view kSbatchShellWithoutTasks = R"(
SLURMD_NODENAME=frontier001
SLURM_JOB_ID=3
SLURM_JOB_NODELIST=frontier[001-002]
SLURM_JOB_NUM_NODES=2
SLURM_LOCALID=0
SLURM_NNODES=2
SLURM_NODEID=0
SLURM_NODELIST=frontier[001-002]
SLURM_PROCID=0
SLURM_TASKS_PER_NODE=1(x2)
)";

// The shell of salloc -N 2, on the login node.
inline constexpr absl::string_view kSallocShell = R"(
SLURM_CLUSTER_NAME=frontier
SLURM_JOBID=4
SLURM_JOB_CPUS_PER_NODE=1(x2)
SLURM_JOB_ID=4
SLURM_JOB_NAME=interactive
SLURM_JOB_NODELIST=frontier[001-002]
SLURM_JOB_NUM_NODES=2
SLURM_NNODES=2
SLURM_NODELIST=frontier[001-002]
SLURM_NODE_ALIASES=(null)
SLURM_SUBMIT_HOST=login1
SLURM_TASKS_PER_NODE=1(x2)
)";

// mpirun -n 3 in salloc -N 2 -n 4: rank 2, on the second node. Slurm's step is that of Open MPI's daemons.
inline constexpr absl::string_view kOpenMpiInSlurm = R"(
OMPI_COMMAND=train
OMPI_COMM_WORLD_LOCAL_RANK=0
OMPI_COMM_WORLD_LOCAL_SIZE=1
OMPI_COMM_WORLD_NODE_RANK=0
OMPI_COMM_WORLD_RANK=2
OMPI_COMM_WORLD_SIZE=3
OMPI_MCA_ess_base_num_procs=3
OMPI_MCA_ess_base_vpid=2
OMPI_MCA_orte_num_nodes=2
OMPI_UNIVERSE_SIZE=4
PMIX_HOSTNAME=frontier002
PMIX_ID=1784545281.2
PMIX_NAMESPACE=1784545281
PMIX_RANK=2
SLURMD_NODENAME=frontier002
SLURM_CLUSTER_NAME=frontier
SLURM_CPUS_ON_NODE=2
SLURM_GTIDS=1
SLURM_JOBID=5
SLURM_JOB_CPUS_PER_NODE=2(x2)
SLURM_JOB_ID=5
SLURM_JOB_NODELIST=frontier[001-002]
SLURM_JOB_NUM_NODES=2
SLURM_LOCALID=0
SLURM_NNODES=2
SLURM_NODEID=1
SLURM_NODELIST=frontier[001-002]
SLURM_NPROCS=2
SLURM_NTASKS=2
SLURM_NTASKS_PER_NODE=1
SLURM_PROCID=1
SLURM_STEPID=0
SLURM_STEP_ID=0
SLURM_STEP_NODELIST=frontier[001-002]
SLURM_STEP_NUM_NODES=2
SLURM_STEP_NUM_TASKS=2
SLURM_STEP_TASKS_PER_NODE=1(x2)
SLURM_TASKS_PER_NODE=1(x2)
)";

// The shell of a PBS job on two nodes with four slots each.
inline constexpr absl::string_view kPbsShell = R"(
NCPUS=64
OMP_NUM_THREADS=64
PBS_ENVIRONMENT=PBS_INTERACTIVE
PBS_JOBDIR=/home/ada
PBS_JOBID=2024084.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov
PBS_JOBNAME=STDIN
PBS_MOMPORT=15003
PBS_NODEFILE=/var/spool/pbs/aux/2024084
PBS_NODENUM=0
PBS_O_HOST=polaris-login-02.hsn.cm.polaris.alcf.anl.gov
PBS_O_WORKDIR=/home/ada
PBS_QUEUE=debug
PBS_TASKNUM=1
)";

// mpiexec -n 8 -ppn 4 of PALS in that job: rank 6.
inline constexpr absl::string_view kPals = R"(
NCPUS=64
PALS_APID=cff755ee-557e-4df2-a987-db85a8b7dbe7
PALS_APINFO=/var/run/palsd/cff755ee-557e-4df2-a987-db85a8b7dbe7/apinfo
PALS_DEPTH=8
PALS_FD=7
PALS_LOCAL_RANKID=2
PALS_LOCAL_SIZE=4
PALS_NODEID=1
PALS_RANKID=6
PALS_SPOOL_DIR=/var/run/palsd/cff755ee-557e-4df2-a987-db85a8b7dbe7
PBS_ENVIRONMENT=PBS_INTERACTIVE
PBS_JOBID=2024084.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov
PBS_NODEFILE=/var/spool/pbs/aux/2024084
PBS_O_HOST=polaris-login-02.hsn.cm.polaris.alcf.anl.gov
PMI_CONTROL_PORT=11998
PMI_JOBID=cff755ee-557e-4df2-a987-db85a8b7dbe7
PMI_LOCAL_RANK=2
PMI_LOCAL_SIZE=4
PMI_RANK=6
PMI_SIZE=8
PMI_UNIVERSE_SIZE=8
)";

// torchrun --nnodes=2 --nproc-per-node=2, rank 3.
inline constexpr absl::string_view kTorchrun = R"(
GROUP_RANK=1
GROUP_WORLD_SIZE=2
LOCAL_RANK=1
LOCAL_WORLD_SIZE=2
MASTER_ADDR=node1
MASTER_PORT=29500
OMP_NUM_THREADS=1
RANK=3
ROLE_NAME=default
ROLE_RANK=3
ROLE_WORLD_SIZE=4
TORCHELASTIC_MAX_RESTARTS=0
TORCHELASTIC_RESTART_COUNT=0
TORCHELASTIC_RUN_ID=none
WORLD_SIZE=4
)";

class Recorded {
 public:
  explicit Recorded(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
      values_[entry.first] = entry.second;
    }
  }
  // Lines to add or replace; "NAME" alone removes.
  Recorded With(absl::string_view changes) const {
    Recorded changed = *this;
    for (const absl::string_view line : absl::StrSplit(changes, '\n', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
      changed.values_.erase(entry.first);
      if (line.find('=') != line.npos) changed.values_[entry.first] = entry.second;
    }
    return changed;
  }
  Lookup lookup() const {
    return [values = values_](const char* name) -> const char* {
      const auto found = values.find(name);
      return found == values.end() ? nullptr : found->second.c_str();
    };
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_LAUNCH_TESTING_RECORDED_ENVIRONMENTS_H_
