// How many processors the ranks of a host may use together.
#ifndef PLAIT_COMM_HOST_PROCESSORS_H_
#define PLAIT_COMM_HOST_PROCESSORS_H_

#include "comm/communicator.h"

namespace plait::comm {

// Hardware threads in the affinity masks of the ranks of `world` on this host (base::HostName): where a launcher has
// bound each rank to its own processors, all of these. Collective over `world`; the same on all ranks of a host.
int ProcessorsOfHost(const Communicator& world);

}  // namespace plait::comm

#endif  // PLAIT_COMM_HOST_PROCESSORS_H_
