// Measures the cost of messages between two ranks, and how much ranks that compute at the same time slow each other
// down.
#ifndef PLAIT_MGRIT_SCALING_MESSAGE_COSTS_H_
#define PLAIT_MGRIT_SCALING_MESSAGE_COSTS_H_

#include <cstdint>
#include <functional>

#include "comm/communicator.h"

namespace plait::mgrit::scaling {

struct MessageCosts {
  double latency_seconds = 0;  // one way, of a message of 8 bytes
  double byte_seconds = 0;     // in addition, per byte
  // Time of `work` on rank 0 while all ranks do it, divided by its time while the others are idle. Meaningful with no
  // more ranks than cores; 1 on ranks other than 0.
  double contention = 1;
  // Time from the end of a rank's work to the start of the next rank's work that waits for its message. Where ranks
  // share cores, this includes waking up and getting a core back.
  double hand_over_seconds = 0;
};

// Collective over at least 2 ranks. Seconds for one way of a message of `bytes` bytes between ranks 0 and 1: the median
// over `repetitions` of 50 round trips. Meaningless on other ranks.
double OneWaySeconds(const comm::Communicator& communicator, std::int64_t bytes, int repetitions);

// Collective over at least 2 ranks; use the result of rank 0. Medians of 15 repetitions (of `work`: 3 to 15): ping-pong
// messages of 8 and of `state_bytes` bytes, and hand-overs of 2 milliseconds of work in turn by all ranks.
MessageCosts MeasureMessages(const comm::Communicator& communicator, std::int64_t state_bytes,
                             const std::function<void()>& work);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_MESSAGE_COSTS_H_
