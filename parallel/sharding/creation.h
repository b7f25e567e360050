// The checks of DataParallel::Create before anything is allocated. Private to parallel/sharding.
#ifndef PLAIT_PARALLEL_SHARDING_CREATION_H_
#define PLAIT_PARALLEL_SHARDING_CREATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/device_mesh.h"
#include "models/block_model.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

// The axis of that name, or a group of one if the mesh has no such axis.
comm::Communicator AxisOrSelf(const comm::DeviceMesh& mesh, const std::string& name);

// Collective over the mesh; the same result on all ranks. INVALID_ARGUMENT, see DataParallel::Create. `initializes`:
// an InitializeUnit is given.
absl::Status CheckUnits(const comm::DeviceMesh& mesh, const std::vector<models::ParameterUnit>& units,
                        const DataParallelOptions& options, bool initializes);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_CREATION_H_
