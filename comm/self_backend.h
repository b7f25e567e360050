// The backend of a group of one: collectives copy or do nothing; messages to itself are buffered until received.
#ifndef PLAIT_COMM_SELF_BACKEND_H_
#define PLAIT_COMM_SELF_BACKEND_H_

#include <memory>

#include "comm/backend.h"

namespace plait::comm {

// `world_rank` is the rank shown in reports.
std::unique_ptr<Backend> MakeSelfBackend(int world_rank = 0);

}  // namespace plait::comm

#endif  // PLAIT_COMM_SELF_BACKEND_H_
