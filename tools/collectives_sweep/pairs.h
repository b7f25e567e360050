// Latency and bandwidth between every two ranks, and who is slow.
//
//   const PairMatrix matrix = MeasurePairs(world, options);
//   for (const std::string& line : SlowParts(matrix, 2.5)) puts(line);
//   // "rank 3 (host) is slow: 4.1x the median latency with every partner"
//
// Ranks meet as teams do in a tournament in which everybody plays everybody: in each of n-1 rounds (n, if
// odd) every rank has one partner, so that pairs talk at the same time without sharing a rank.
//
// A busy machine is not a slow one. What counts is the least time of many messages, and as long as anything
// seems slow all pairs meet again, a moment later: what was in the way passes, a slow link stays. Where ranks
// share cores, only what costs more than a turn of the scheduler counts.
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

// One line for each rank whose whole row is slow, and for each link that is slow while its ranks are not.
// Links within a host and between hosts are compared with their like: with the lower quartile of their kind,
// which holds although one slow rank of four makes half of all links slow. Slow is what lies more than
// `ratio` times and five deviations (1.4826 MAD) above the median of these quotients, and where ranks share
// cores half a millisecond. Latency first; what is named by it is not named for its bandwidth again.
std::vector<std::string> SlowParts(const PairMatrix& matrix, double ratio);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_PAIRS_H_
