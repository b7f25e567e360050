// Distributes the experts of a model over the ranks of a mesh.
//
//   PLAIT_RETURN_IF_ERROR(Parallelize(model, mesh, plan));               // dense layers over tp, first
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh expert_mesh, ExpertMesh(data_mesh, ep));
//   PLAIT_RETURN_IF_ERROR(DistributeExperts(model, expert_mesh));
//
// Every rank keeps its home experts, and of each its part of the hidden width along tp. Call it before memory is
// allocated (on the meta device) and before an engine takes the parameters: units of experts are replicated and sharded
// over the mesh axes ep_replicate and ep_shard.
#ifndef PLAIT_MODELS_MOE_DISTRIBUTE_H_
#define PLAIT_MODELS_MOE_DISTRIBUTE_H_

#include <vector>

#include "absl/status/status.h"
#include "comm/device_mesh.h"
#include "models/split_module_model.h"

namespace plait::moe {

class MoeMlp;

class ExpertModel {
 public:
  virtual ~ExpertModel() = default;
  // In the order of blocks; empty: the model has no experts.
  virtual std::vector<MoeMlp*> moe_layers() const = 0;
  // Returns *this.
  virtual models::SplitModuleModel& split_model() = 0;
};

// Collective over mesh.world(). INVALID_ARGUMENT, the same on all ranks and with nothing changed, if Validate(options)
// fails, there are fewer experts than ranks along ep or fewer hidden columns than ranks along tp, a capacity factor is
// set although cp splits sequences (`splits_sequences`), or options differ between ranks.
absl::Status DistributeExperts(ExpertModel& model, const comm::DeviceMesh& mesh,
                               bool splits_sequences = false);

}  // namespace plait::moe

#endif  // PLAIT_MODELS_MOE_DISTRIBUTE_H_
