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
// ERROR: the world does not have `asked` ranks (0: any number is right).
Finding CheckRanks(const Ranks& ranks, int asked);
// One ERROR for each contradiction; one OK without.
std::vector<Finding> CheckContradictions(const std::vector<std::string>& contradictions);
// ERROR: different hosts have one name, or a name does not resolve though there are several hosts; WARNING:
// it does not, on one host.
Finding CheckHostNames(const Ranks& ranks);
// Offsets from rank 0's clock, beyond the measurement's uncertainty. WARNING above 10 ms, ERROR above a minute.
Finding CheckClocks(const Ranks& ranks);

// check_host.cc
// Available memory of a host per rank on it. WARNING below 1 GiB or unknown, ERROR below 128 MiB.
Finding CheckMemory(const Ranks& ranks);
// WARNING below 1024, ERROR below 64 + 4 per rank of the job.
Finding CheckOpenFiles(const Ranks& ranks);
// /dev/shm, for messages within a host. WARNING: absent, or less than 8 MiB free for each rank of the host.
Finding CheckSharedMemory(const Ranks& ranks);
// WARNING: more ranks on a host than cores that they may use together.
Finding CheckCores(const Ranks& ranks);
// WARNING: OMP_NUM_THREADS is not set where ranks share cores, is no number (nor a list of them, whose first counts),
// or asks for more threads than a rank, or the ranks of a host together, have cores.
Finding CheckThreads(const Ranks& ranks);
// WARNING below 1 GiB, ERROR below 64 MiB or if statvfs fails on `folder`.
Finding CheckFreeSpace(const Ranks& ranks, const std::string& folder);
Finding CheckGnuplot(const Ranks& ranks);  // WARNING: rank 0 has none
Finding CheckLocale(const Ranks& ranks);   // WARNING: not UTF-8

// check_devices.cc
// ERROR: devices whose driver does not load, or no device on a host while others have some; WARNING: devices, but a
// build without CUDA. No device on any host: OK.
Finding CheckDevices(const Ranks& ranks);
// In a build with CUDA on ranks with devices. ERROR: libnccl cannot be loaded, or its version is another than rank 0's.
Finding CheckNccl(const Ranks& ranks);

// All of them, in the order of the report.
std::vector<Finding> CheckAll(const Ranks& ranks, int asked, const std::vector<std::string>& contradictions,
                              const std::string& folder);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_CHECKS_H_
