// Gathers the facts of this rank. Local but for ProbeRanks.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_PROBE_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_PROBE_H_

#include <cstdint>
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

// All but the clock.
RankFacts Probe(const ProbeSources& sources, const comm::Job& job);

// Collective: Probe on every rank, and the clocks; by rank, on every rank.
std::vector<RankFacts> ProbeRanks(const ProbeSources& sources, const comm::Job& job,
                                  const comm::Communicator& world);

// Free for programs: MemAvailable of `proc`/meminfo, or what a control group (v2, v1) leaves of it.
std::int64_t MemoryAvailable(const std::string& proc, const std::string& cgroup);
// "Open MPI 4.1.4" from the first line of "Open MPI v4.1.4, package: ...", "mpirun (Open MPI) 4.1.4",
// "MPICH Version: 4.0.2" or "HYDRA build details: Version: 4.0.2"; the text's first line where it is none of
// them.
std::string MpiVersion(const std::string& text);
// The numbers of the CUDA driver and NCCL, loaded and not linked: `driver_error` or `nccl_version` are set.
void ProbeDevices(RankFacts& facts);
bool BuiltWithCuda();  // built_with_cuda.cc or its stand-in, by the build

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_PROBE_H_
