// Consistency checks of what launchers and schedulers set. Each finding is one line of Job::contradictions:
// what, where, what was expected, what to do. Internal to comm/launch/job.h.
//
// Not reported: an mpirun that uses part of its allocation, the SLURM_PROCID of the daemon by which
// mpirun or Hydra started a rank, a shell of salloc, sbatch or srun without ranks.
#ifndef PLAIT_COMM_LAUNCH_JOB_CHECK_H_
#define PLAIT_COMM_LAUNCH_JOB_CHECK_H_

#include <string>
#include <vector>

#include "comm/launch/job.h"

namespace plait::comm {

// Variables of one launcher that are incomplete, malformed or inconsistent; launchers that contradict each other.
void CheckLaunchers(const Lookup& lookup, Job& job);

// Host lists that do not match their counts, two schedulers at once, a missing node list, ranks on hosts that are not
// listed. `listed`: job.hosts come from a list.
void CheckScheduler(const JobSources& sources, bool listed, Job& job);

// Whether all hosts of a host file are among `allocated` (empty: all are accepted); reports those that are not.
bool CheckSelectedHosts(const std::string& file, const std::vector<HostSlots>& selected,
                        const std::vector<HostSlots>& allocated, Job& job);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_JOB_CHECK_H_
