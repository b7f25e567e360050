// How far the clock of a rank is from that of rank 0.
//
// Rank 0 asks each rank in turn for its time, `rounds` times. The round with the shortest way there and
// back counts: the answer is taken to lie in its middle, so the offset is wrong by at most half of that way
// (Cristian, "Probabilistic clock synchronization", 1989).
#ifndef PLAIT_TOOLS_RANK_HISTORY_CLOCK_OFFSET_H_
#define PLAIT_TOOLS_RANK_HISTORY_CLOCK_OFFSET_H_

#include <cstdint>
#include <functional>

#include "comm/communicator.h"

namespace plait::rank_history {

struct ClockOffset {
  double at_seconds = 0;           // on this rank's clock
  double offset_seconds = 0;       // to be added to this rank's clock to get rank 0's
  double uncertainty_seconds = 0;  // the true offset is at most so far away
};

// Collective. `now_ns` reads this rank's clock. 0 on rank 0.
ClockOffset MeasureClockOffset(const comm::Communicator& group, const std::function<std::int64_t()>& now_ns,
                               int rounds = 20);

}  // namespace plait::rank_history

#endif  // PLAIT_TOOLS_RANK_HISTORY_CLOCK_OFFSET_H_
