#include "parallel/sharding/stored_tensor.h"

#include "base/status_macros.h"

namespace plait::parallel {

absl::Status StoredTensor::Visit(bool changes, const Visitor& visit) const {
  if (resident()) return visit(tensor_);
  PLAIT_ASSIGN_OR_RETURN(const at::Tensor values, store_->Acquire(slot_));
  const absl::Status visited = visit(values);
  PLAIT_RETURN_IF_ERROR(store_->Release(slot_, changes));
  return visited;
}

}  // namespace plait::parallel
