// Argument checks that hold for all transports: counts, types, root, device, overlap. Private to comm.
#ifndef PLAIT_COMM_REQUEST_CHECK_H_
#define PLAIT_COMM_REQUEST_CHECK_H_

#include "comm/operation.h"

namespace plait::comm {

// Aborts (PLAIT_CHECK) if `request` is invalid on this rank. Local. Tags are not checked.
void CheckRequest(const Request& request, int rank, int size, Device device);

}  // namespace plait::comm

#endif  // PLAIT_COMM_REQUEST_CHECK_H_
