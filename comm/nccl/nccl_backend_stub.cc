// Stands in for the NCCL backend where the build found no CUDA.
#include "comm/nccl/nccl_backend.h"

namespace plait::comm {

DeviceBackendFactory NcclBackendFactory() { return {}; }

}  // namespace plait::comm
