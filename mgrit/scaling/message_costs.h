// What messages cost between two ranks, and how much ranks that compute at the same time slow each other
// down.
#ifndef PLAIT_MGRIT_SCALING_MESSAGE_COSTS_H_
#define PLAIT_MGRIT_SCALING_MESSAGE_COSTS_H_

#include <cstdint>
#include <functional>

#include "comm/communicator.h"

namespace plait::mgrit::scaling {

struct MessageCosts {
  double latency_seconds = 0;  // of a message of 8 bytes, one way
  double byte_seconds = 0;     // more for every byte of a state
  // Time of `work` with all ranks (at most as many as cores) at it, over its time on rank 0 alone.
  double contention = 1;
  // From the end of a rank's work to the beginning of the next rank's that waited for its message, where the
  // ranks share cores: the wait sleeps, and the rank has to get its core back.
  double hand_over_seconds = 0;
};

// Collective. Seconds of one way of a message between the ranks 0 and 1: the median of `repetitions` ping-pongs.
double OneWaySeconds(const comm::Communicator& communicator, std::int64_t bytes, int repetitions);

// Collective. Medians of several repetitions; messages of ping-pong between the ranks 0 and 1, of 8 and of `state_bytes`,
// hand-overs of 2 milliseconds of work that goes round all ranks.
MessageCosts MeasureMessages(const comm::Communicator& communicator, std::int64_t state_bytes,
                             const std::function<void()>& work);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_MESSAGE_COSTS_H_
