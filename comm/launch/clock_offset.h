// How far the clocks of ranks are apart: for traces of several hosts on one time line, and to find a host
// without a time service.
//
//   const std::vector<comm::ClockOffset> offsets = comm::MeasureClockOffsets(world, comm::WallClockSeconds);
//   time_of_rank_0 = time_here - offsets[world.rank()].seconds;
//
// As in NTP (RFC 5905): rank 0 asks each rank for its time; of several exchanges the fastest counts, and the
// answer is taken to have been given half way.
#ifndef PLAIT_COMM_LAUNCH_CLOCK_OFFSET_H_
#define PLAIT_COMM_LAUNCH_CLOCK_OFFSET_H_

#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace plait::comm {

struct ClockOffset {
  double seconds = 0;              // this clock minus rank 0's
  double uncertainty_seconds = 0;  // at most: half of the exchange's time
};

double WallClockSeconds();  // since 1970

// Collective. By rank, the same on all ranks; rank 0's is zero. Ranks are asked one after the other:
// `exchanges` round trips each.
std::vector<ClockOffset> MeasureClockOffsets(const Communicator& world, const std::function<double()>& clock,
                                             int exchanges = 20);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_CLOCK_OFFSET_H_
