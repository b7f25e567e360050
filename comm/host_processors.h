// How many processors the ranks of a host may use together.
#ifndef PLAIT_COMM_HOST_PROCESSORS_H_
#define PLAIT_COMM_HOST_PROCESSORS_H_

#include "comm/communicator.h"

namespace plait::comm {

// Hardware threads in the affinity masks of the ranks of `host`, all of one machine: where a launcher has bound each rank
// to its own processors, all of these. Collective over `host`.
int ProcessorsOfRanks(const Communicator& host);

}  // namespace plait::comm

#endif  // PLAIT_COMM_HOST_PROCESSORS_H_
