// Gathers the facts of this rank. Local but for ProbeRanks.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_PROBE_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_PROBE_H_

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/launch/job.h"
#include "comm/launch/starter.h"
#include "tools/doctor_checks/rank_facts.h"

namespace plait::doctor {

struct ProbeSources {
  comm::Lookup lookup;
  comm::Commands commands;
  std::string folder;  // where runs will write
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string shared_memory = "/dev/shm";
};
ProbeSources ProcessProbeSources(const std::string& folder);

// All facts but the clock's and host_cores.
RankFacts Probe(const ProbeSources& sources, const comm::Job& job);

// Collective over `world`: probes every rank and measures clock offsets. Returns the facts of all ranks, by rank.
std::vector<RankFacts> ProbeRanks(const ProbeSources& sources, const comm::Job& job,
                                  const comm::Communicator& world);

// "Open MPI 4.1.4" from the first line of "Open MPI v4.1.4, package: ...", "mpirun (Open MPI) 4.1.4",
// "MPICH Version: 4.0.2" or "HYDRA build details: Version: 4.0.2"; the text's first line where it is none of
// them.
std::string MpiVersion(const std::string& text);
// Sets `driver_error` and `nccl_version` by loading libcuda.so.1 and libnccl.so.2 with dlopen (neither is linked);
// does nothing if facts.devices is 0.
void ProbeDevices(RankFacts& facts);
bool BuiltWithCuda();  // built_with_cuda.cc or its stand-in, by the build

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_PROBE_H_
