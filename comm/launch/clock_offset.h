// Clock offsets between ranks: to align traces of several hosts, and to find a host without time synchronization.
//
//   const std::vector<comm::ClockOffset> offsets = comm::MeasureClockOffsets(world, comm::WallClockSeconds);
//   time_of_rank_0 = time_here - offsets[world.rank()].seconds;
//
// As in NTP (RFC 5905): rank 0 asks each rank for its time, uses the exchange with the shortest round trip, and assumes
// that the answer was given half way.
#ifndef PLAIT_COMM_LAUNCH_CLOCK_OFFSET_H_
#define PLAIT_COMM_LAUNCH_CLOCK_OFFSET_H_

#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace plait::comm {

struct ClockOffset {
  double seconds = 0;              // this clock minus rank 0's
  double uncertainty_seconds = 0;  // upper bound: half of the round trip
};

double WallClockSeconds();  // since the Unix epoch

// Collective. Returns the offsets by rank, the same on all ranks; rank 0's is zero. Rank 0 exchanges `exchanges` round
// trips with each other rank, one rank after the other.
std::vector<ClockOffset> MeasureClockOffsets(const Communicator& world, const std::function<double()>& clock,
                                             int exchanges = 20);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_CLOCK_OFFSET_H_
