// Rules that every request keeps, whatever the transport. A broken one is a programming error. Private to
// comm.
#ifndef PLAIT_COMM_REQUEST_CHECK_H_
#define PLAIT_COMM_REQUEST_CHECK_H_

#include "comm/operation.h"

namespace plait::comm {

void CheckRequest(const Request& request, int rank, int size, Device device);

}  // namespace plait::comm

#endif  // PLAIT_COMM_REQUEST_CHECK_H_
