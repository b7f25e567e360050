// Whether all ranks can write one HDF5 file together.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_PARALLEL_FILE_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_PARALLEL_FILE_H_

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tools/doctor_checks/finding.h"

namespace plait::doctor {

// Collective over `world`. All ranks write their parts of one dataset in `folder` through MPI-IO (a single process
// without MPI: through HDF5's default driver), close it, read back the next rank's part and compare; rank 0 removes the
// file. ERROR names the folder, the step that failed and the ranks on which it did. `ranks` is indexed by rank of
// `world`.
Finding CheckParallelFile(const comm::Communicator& world, const std::vector<RankFacts>& ranks,
                          const std::string& folder);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_PARALLEL_FILE_H_
