// A small network with batch norm, whose running statistics are updated only in final calls (BlockContext::final).
#ifndef PLAIT_TESTS_PARITY_NORMALIZED_MODEL_H_
#define PLAIT_TESTS_PARITY_NORMALIZED_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/module_model.h"

namespace plait::parity {

// Inputs (batch, features), targets (batch) of classes: `layers` blocks x + dt / 4 tanh(batch norm(x)).
class NormalizedModel final : public models::ModuleModel {
 public:
  NormalizedModel(std::int64_t features, std::int64_t layers, std::int64_t classes,
                  const at::TensorOptions& options);
  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  std::string Description() const override { return "NormalizedModel"; }

 private:
  at::Tensor opening_, closing_;
};

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_NORMALIZED_MODEL_H_
