// A sweep as netCDF-4 compatible HDF5.
//
//   >>> s = xarray.open_dataset("sweep.h5")
//   >>> s.bus_bandwidth.sel(operation="all_reduce", group="world").plot(xscale="log")
//
// Dimensions with coordinates: operation and group (names), size (bytes asked for), rank and partner.
// Variables along (operation, group, size): time, time_min, time_max [s], algorithm_bandwidth, bus_bandwidth
// [bytes/s], bytes, wrong; what was not measured is NaN. Along (rank, partner): pair_latency [s],
// pair_bandwidth [bytes/s]. Attributes: program, ranks, type, reduction, root, hosts.
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_FILE_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_FILE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "tools/collectives_sweep/pairs.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {

// Whole or not at all; replaces an older one. `attributes` are added to those above. Local: for one rank.
absl::Status WriteSweep(const std::string& path, const Sweep& sweep, const PairMatrix& pairs,
                        const SweepOptions& options, const std::map<std::string, std::string>& attributes);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_SWEEP_FILE_H_
