// How many processors this process may use.
#ifndef PLAIT_BASE_PROCESSORS_H_
#define PLAIT_BASE_PROCESSORS_H_

namespace plait::base {

// Hardware threads in this process's affinity mask (sched_getaffinity), which a launcher's binding, taskset and the
// cpuset of a container or of a scheduler's job limit; at least 1. std::thread::hardware_concurrency() counts all of
// the machine.
int UsableProcessors();

}  // namespace plait::base

#endif  // PLAIT_BASE_PROCESSORS_H_
