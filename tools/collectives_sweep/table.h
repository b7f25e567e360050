// A sweep in words: columns as nccl-tests prints them, least and greatest time as the OSU benchmarks do.
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_TABLE_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_TABLE_H_

#include <string>
#include <vector>

#include "tools/collectives_sweep/pairs.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {

// Before the first row of an operation on a group.
std::vector<std::string> Heading(const Sweep& sweep, const Row& row);
// "        1024           256     f32     sum    -1     12.3     11.9     14.0     0.08     0.12       0"
std::string Line(const Row& row);

// Latency and bandwidth of each pair; of many ranks, each rank's least, median and greatest instead.
std::vector<std::string> MatrixLines(const PairMatrix& matrix);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_TABLE_H_
