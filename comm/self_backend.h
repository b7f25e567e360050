// The group of one: every collective is a copy, or nothing. Messages to oneself are kept until received.
#ifndef PLAIT_COMM_SELF_BACKEND_H_
#define PLAIT_COMM_SELF_BACKEND_H_

#include <memory>

#include "comm/backend.h"

namespace plait::comm {

// `world_rank` is the rank that reports name.
std::unique_ptr<Backend> MakeSelfBackend(int world_rank = 0);

}  // namespace plait::comm

#endif  // PLAIT_COMM_SELF_BACKEND_H_
