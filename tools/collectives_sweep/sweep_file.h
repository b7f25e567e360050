// A sweep as netCDF-4 compatible HDF5.
//
//   >>> s = xarray.open_dataset("sweep.h5")
//   >>> s.bus_bandwidth.sel(operation="all_reduce", group="world").plot(xscale="log")
//
// Dimensions with coordinates: operation and group (names), size (bytes asked for); rank and partner only if pairs
// were measured. Variables along (operation, group, size): time, time_min, time_max [s], algorithm_bandwidth,
// bus_bandwidth [bytes/s], bytes, wrong (elements); NaN where not measured, such as sizes of the barrier but the first.
// Along (rank, partner): pair_latency [s], pair_bandwidth [bytes/s]. Attributes: Conventions, type, reduction, root,
// hosts (of the ranks, separated by spaces; empty if pairs were not measured).
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_FILE_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_FILE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "tools/collectives_sweep/pairs.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {

// Writes the file atomically, replacing an existing one. `attributes` are added to those above. Local: called on one
// rank.
absl::Status WriteSweep(const std::string& path, const Sweep& sweep, const PairMatrix& pairs,
                        const SweepOptions& options, const std::map<std::string, std::string>& attributes);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_FILE_H_
