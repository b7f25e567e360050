#include "models/block_runner.h"

#include "base/check.h"

namespace plait::models {

void Materialize(const at::Tensor& parameter, const at::Tensor& data) {
  PLAIT_CHECK(parameter.sizes() == data.sizes())
      << "data of shape " << data.sizes() << " for a parameter of shape " << parameter.sizes();
  PLAIT_CHECK(parameter.is_leaf() && !data.requires_grad());
  // What set_data() does after it has refused tensors of kMeta.
  parameter.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

bool IsDecayed(const at::Tensor& parameter) { return parameter.dim() >= 2; }

std::int64_t CountParameters(const std::vector<ParameterUnit>& units) {
  std::int64_t count = 0;
  for (const ParameterUnit& unit : units) {
    for (const auto& [name, parameter] : unit.parameters) count += parameter.numel();
  }
  return count;
}

}  // namespace plait::models
