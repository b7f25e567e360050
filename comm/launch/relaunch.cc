#include "comm/launch/relaunch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/host_name.h"
#include "base/path.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"

namespace plait::comm {
namespace {

// A limit against typing errors: each rank takes time to start, and memory.
constexpr int kMostRanksPerCore = 32;

// With fewer open files mpirun does not report an error: it crashes and hangs.
absl::Status CheckOpenFiles(int ranks) {
  constexpr rlim_t kOfMpirun = 64, kOfRank = 8;
  rlimit limit{};
  const rlim_t needed = kOfMpirun + kOfRank * static_cast<rlim_t>(ranks);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("this process may have ", limit.rlim_max, " files open; ",
                                                   ranks, ranks == 1 ? " rank needs " : " ranks need ",
                                                   needed, ": raise the limit (ulimit -n)"));
}

// mpirun and its ranks share memory through files of up to 16 MiB. Under a smaller limit mpirun may hang, deaf to SIGTERM.
absl::Status CheckFileSize(int ranks) {
  constexpr rlim_t kNeeded = 16 << 20;
  rlimit limit{};
  if (ranks == 1 || getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kNeeded)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("this process may write files of ", limit.rlim_cur,
                                                   " bytes; to start ", ranks, " ranks needs ", kNeeded >> 20,
                                                   " MiB: raise the limit (ulimit -f)"));
}

// For a user that the system does not know, mpirun takes HOME, or crashes.
absl::Status CheckHome() {
  if (!base::FromUser("~").empty()) return absl::OkStatus();
  return absl::NotFoundError("no home folder, which mpirun needs: set HOME");
}

// mpirun also in a Slurm job, because srun may not support the MPI; srun only if there is nothing else.
absl::StatusOr<FoundStarter> FindForRelaunch() {
  absl::StatusOr<FoundStarter> found = FindStarter(/*in_slurm_job=*/false, ProcessCommands());
  if (found.ok() || std::getenv("SLURM_JOB_ID") == nullptr) return found;
  return FindStarter(/*in_slurm_job=*/true, ProcessCommands());
}

}  // namespace

std::string HostInJob(const Lookup& lookup) {
  constexpr std::array kJobs = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "PE_HOSTFILE", "LSB_JOBID"};
  const bool in_job =
      std::any_of(kJobs.begin(), kJobs.end(), [&](const char* name) { return lookup(name) != nullptr; });
  const char* node = lookup("SLURMD_NODENAME");
  if (node != nullptr) return node;
  return in_job ? base::HostName() : "";
}

LaunchPlan RelaunchPlan(const FoundStarter& found, const RelaunchOptions& options, const std::string& program,
                        const std::vector<std::string>& arguments) {
  // Open MPI's own limit is the number of physical cores. Ranks are not bound: two jobs would be bound to the
  // same cores.
  LaunchPlan plan = {.starter = found.starter,
                     .executable = found.executable,
                     .ranks = options.ranks,
                     .binding = Binding::kNone,
                     .oversubscribe = true,
                     .as_root = options.as_root,
                     .this_machine = !options.host_in_job.empty(),
                     .mpi_plugin = found.mpi_plugin,
                     .program = {program}};
  // Open MPI would have to find the host among those that it is not to ask for.
  if (plan.this_machine && found.starter != Starter::kOpenMpi) {
    plan.hosts = {{options.host_in_job, options.ranks}};
  }
  if (options.set_one_thread) plan.environment = {{"OMP_NUM_THREADS", "1"}};
  plan.program.insert(plan.program.end(), arguments.begin(), arguments.end());
  return plan;
}

absl::Status CheckRanksOfHost(int ranks) {
  if (ranks < 1) return absl::InvalidArgumentError(absl::StrCat("cannot run on ", ranks, " ranks"));
  const int cores = base::UsableProcessors();
  if (ranks > kMostRanksPerCore * cores) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nproc=", ranks, ": this process may use ", cores, " processors; expected at most ",
                     kMostRanksPerCore, " ranks for each, or ranks that mpirun starts on several machines"));
  }
  PLAIT_RETURN_IF_ERROR(CheckHome());
  PLAIT_RETURN_IF_ERROR(CheckFileSize(ranks));
  return CheckOpenFiles(ranks);
}

absl::StatusOr<std::vector<std::string>> RelaunchCommand(int ranks, char** argv) {
  PLAIT_RETURN_IF_ERROR(CheckTorchrun(DetectLauncher()));
  PLAIT_RETURN_IF_ERROR(CheckRanksOfHost(ranks));
  PLAIT_RETURN_IF_ERROR(CheckAddressSpaceOfRank());
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::NotFoundError("/proc/self/exe: " + error.message());
  PLAIT_ASSIGN_OR_RETURN(const FoundStarter found, FindForRelaunch());
  std::vector<std::string> arguments;
  for (char** argument = argv + 1; *argument != nullptr; ++argument) arguments.push_back(*argument);
  return LaunchCommand(RelaunchPlan(found,
                                    {.ranks = ranks,
                                     .host_in_job = HostInJob(ProcessEnvironment()),
                                     .as_root = geteuid() == 0,
                                     .set_one_thread = std::getenv("OMP_NUM_THREADS") == nullptr},
                                    program, arguments));
}

}  // namespace plait::comm
