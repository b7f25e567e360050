// The checks of `doctor`: each judges the facts of all ranks (by rank) and gives one finding. Pure functions:
// what they read was gathered before (probe.h, comm/launch/clock_offset.h).
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_CHECKS_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_CHECKS_H_

#include <string>
#include <vector>

#include "tools/doctor_checks/finding.h"
#include "tools/doctor_checks/rank_facts.h"

namespace plait::doctor {

using Ranks = std::vector<RankFacts>;

// check_job.cc
// ERROR: mpirun on the PATH is of another MPI than the library. WARNING: there is no mpirun, or its version
// differs.
Finding CheckMpi(const Ranks& ranks);
// ERROR: fewer or more ranks than `asked` (0: as many as the launcher likes) are in one world.
Finding CheckRanks(const Ranks& ranks, int asked);
// One ERROR for each contradiction; one OK without.
std::vector<Finding> CheckContradictions(const std::vector<std::string>& contradictions);
// ERROR: different hosts have one name, or a name does not resolve though there are several hosts; WARNING:
// it does not, on one host.
Finding CheckHostNames(const Ranks& ranks);
// WARNING: clocks more than 10 ms apart; ERROR: more than a minute.
Finding CheckClocks(const Ranks& ranks);

// check_host.cc
// Memory of a host for each of its ranks. WARNING below 1 GiB, ERROR below 128 MiB.
Finding CheckMemory(const Ranks& ranks);
// WARNING below 1024, ERROR below 64 and 4 for each rank.
Finding CheckOpenFiles(const Ranks& ranks);
// /dev/shm, for messages within a host. WARNING: absent, or less than 8 MiB free for each rank of the host.
Finding CheckSharedMemory(const Ranks& ranks);
// WARNING: more ranks on a host than cores.
Finding CheckCores(const Ranks& ranks);
// WARNING: OMP_NUM_THREADS is not set where ranks share a host, is no number, or asks for more threads than
// there are cores.
Finding CheckThreads(const Ranks& ranks);
// WARNING below 1 GiB, ERROR below 64 MiB or where the folder cannot be looked at.
Finding CheckFreeSpace(const Ranks& ranks, const std::string& folder);
Finding CheckGnuplot(const Ranks& ranks);  // WARNING: rank 0 has none
Finding CheckLocale(const Ranks& ranks);   // WARNING: not UTF-8

// check_devices.cc
// ERROR: devices whose driver does not load; WARNING: devices that this build leaves alone. None: OK.
Finding CheckDevices(const Ranks& ranks);
// WARNING: devices without NCCL, or different versions of it.
Finding CheckNccl(const Ranks& ranks);

// All of them, in the order of a reader's interest.
std::vector<Finding> CheckAll(const Ranks& ranks, int asked, const std::vector<std::string>& contradictions,
                              const std::string& folder);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_CHECKS_H_
