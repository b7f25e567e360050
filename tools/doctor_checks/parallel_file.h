// Whether all ranks can write one HDF5 file together.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_PARALLEL_FILE_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_PARALLEL_FILE_H_

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tools/doctor_checks/finding.h"

namespace plait::doctor {

// Collective. All ranks write their parts of one data set in `folder` through MPI-IO (a single process
// without MPI: through the plain driver), close it, read the next rank's part back and compare; rank 0
// removes the file. ERROR names the folder, the step and all ranks that failed in it. `ranks` by rank of
// `world`.
Finding CheckParallelFile(const comm::Communicator& world, const std::vector<RankFacts>& ranks,
                          const std::string& folder);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_PARALLEL_FILE_H_
