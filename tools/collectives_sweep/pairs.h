// Latency and bandwidth between every two ranks, and who is slow.
//
//   const PairMatrix matrix = MeasurePairs(world, options);
//   for (const std::string& line : SlowParts(matrix, 2.5)) puts(line);
//   // "rank 3 (host) is slow: 4.1x the median latency with every partner"
//
// Pairs are scheduled as a round-robin tournament: in each of n-1 rounds (n if n is odd, with one rank idle) every
// rank has one partner, so that pairs are measured at the same time without sharing a rank.
//
// Load from other programs must not be reported as a slow link. So the minimum over many messages counts, and while
// anything seems slow all pairs are measured again after a pause, up to SweepOptions::pair_passes times. Where ranks
// share cores, only differences of more than a scheduler's time slice count.
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_PAIRS_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_PAIRS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {

// Rounds of disjoint pairs (lower rank first); every pair of 0 .. ranks-1 occurs exactly once.
using Round = std::vector<std::pair<int, int>>;
std::vector<Round> Tournament(int ranks);

// Symmetric; the diagonal is 0.
struct PairMatrix {
  int ranks = 0;
  std::int64_t message_bytes = 0;                             // of the long messages
  std::vector<std::string> hosts = {};                        // of each rank
  bool shares_cores = false;                                  // some host has more ranks than cores
  std::vector<double> short_seconds = {}, long_seconds = {};  // one way, row-major

  double latency(int a, int b) const { return short_seconds[static_cast<std::size_t>(a) * ranks + b]; }
  double seconds(int a, int b) const { return long_seconds[static_cast<std::size_t>(a) * ranks + b]; }
  double bandwidth(int a, int b) const { return a == b ? 0 : message_bytes / seconds(a, b); }
};

// Collective; the same on all ranks.
PairMatrix MeasurePairs(const comm::Communicator& world, const SweepOptions& options);

// One line for each rank all of whose links are slow, and for each slow link between ranks that are not; none for
// fewer than three ranks. Local.
//
// A link's time is divided by the lower quartile of its kind (within a host, or between hosts), which is robust
// although one slow rank of four makes half of all links slow. A rank (by its best link) or a link is slow if its
// quotient exceeds both `ratio` times the median and the median plus five deviations (1.4826 MAD) and, where ranks
// share cores, its time exceeds the quartile by more than half a millisecond. Latency is judged first; what is slow by
// latency is not reported again for its bandwidth.
std::vector<std::string> SlowParts(const PairMatrix& matrix, double ratio);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_PAIRS_H_
