// Whether what launchers and schedulers say fits together. Each finding is one line of Job::contradictions:
// what, where, what was expected, what to do. Internal to comm/launch/job.h.
//
// No contradiction: an mpirun that uses a part of its allocation, the SLURM_PROCID of the daemon by which
// mpirun or Hydra started a rank, a shell of salloc or sbatch without ranks.
#ifndef PLAIT_COMM_LAUNCH_JOB_CHECK_H_
#define PLAIT_COMM_LAUNCH_JOB_CHECK_H_

#include <string>
#include <vector>

#include "comm/launch/job.h"

namespace plait::comm {

// Variables of one launcher that are half there, are no numbers or do not fit together; launchers that
// contradict each other.
void CheckLaunchers(const Lookup& lookup, Job& job);

// Lists against counts, two schedulers at once, a node list that is missing, ranks on hosts that are not
// listed. `listed`: job.hosts come from a list.
void CheckScheduler(const JobSources& sources, bool listed, Job& job);

// Whether all hosts of a host file are among `allocated` (empty: anything goes); reports those that are not.
bool CheckSelectedHosts(const std::string& file, const std::vector<HostSlots>& selected,
                        const std::vector<HostSlots>& allocated, Job& job);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_JOB_CHECK_H_
