// The whole sweep: collectives, pairs, who is slow, file and plots.
//
//   SweepOptions options = {.file = "sweep.h5", .plots_folder = "plots"};
//   return RunSweep(session.world(), options, [](const std::string& line) { std::puts(line.c_str()); });
//
// prints
//
//   # all_reduce, group world of 2 ranks
//   #       size         count    type   redop  root     time      min      max    algbw    busbw  #wrong
//   #        (B)    (elements)                           (us)     (us)     (us)   (GB/s)   (GB/s)
//              8             2     f32     sum    -1     1.02     0.98     1.10  0.00784  0.00784       0
//   ...
//   # slow: rank 3 (host) is slow: 4.1x the median latency with every partner
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_RUN_SWEEP_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_RUN_SWEEP_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "data/plot/plot.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {

using Printer = std::function<void(const std::string& line)>;

// Collective over `world`; calls `print` on rank 0 only. Returns the same on all ranks: INVALID_ARGUMENT for options
// that CheckOptions refuses, DATA_LOSS with the first wrong result (after the whole sweep), or the error of WriteSweep.
// Slow ranks or links, and plots that cannot be drawn, are printed and are not errors. `attributes` are written to the
// file, with "ranks".
absl::Status RunSweep(const comm::Communicator& world, const SweepOptions& options, const Printer& print,
                      const std::map<std::string, std::string>& attributes = {});

// Bus bandwidth and time over size, log-log, of each group.
std::vector<data::Plot> PlotsOf(const Sweep& sweep);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_RUN_SWEEP_H_
