// A sweep as text: nccl-tests' columns, with least and greatest time as in the OSU benchmarks.
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_TABLE_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_TABLE_H_

#include <string>
#include <vector>

#include "tools/collectives_sweep/pairs.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {

// Before the first row of an operation on a group.
std::vector<std::string> Heading(const Sweep& sweep, const Row& row);
// "        1024           256     f32     sum    -1    12.30    11.90    14.00   0.0833    0.125       0"
std::string Line(const Row& row);

// Latency (us) and bandwidth (GB/s) of each pair; for more than 16 ranks each rank's least, median and greatest.
std::vector<std::string> MatrixLines(const PairMatrix& matrix);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_TABLE_H_
