// A model of your own: y = W_out u_L, u_{i+1} = u_i + W_2 gelu(W_1 u_i + b_1) + b_2, u_0 = W_in x. docs/tutorial.md.
#ifndef TUTORIAL_RESIDUAL_NET_H_
#define TUTORIAL_RESIDUAL_NET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/module_model.h"
#include "parallel/tensor/parallelize.h"

namespace tutorial {

class ResidualNet final : public plait::models::ModuleModel, public plait::tensor_parallel::SplittableModel {
 public:
  ResidualNet(std::int64_t in, std::int64_t width, std::int64_t depth, const at::TensorOptions& options);

  // Inputs (batch, in), targets (batch, 1).
  plait::models::BlockState Prologue(const plait::models::Batch& batch,
                                     const plait::models::BlockContext& context) override;
  at::Tensor Output(const plait::models::BlockState& state) override;
  plait::models::LossSum Epilogue(const plait::models::BlockState& state,
                                  const plait::models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  std::string Description() const override;

  // Which layers can be split over the ranks of tp.
  std::vector<plait::tensor_parallel::SplitGroup> SplitGroups(int ranks) override;
  void UseTensorAxis(const plait::tensor_parallel::TensorAxis&) override {}
  std::vector<plait::models::ParameterUnit> units() const override { return ModuleModel::units(); }
  void SetPlacement(const at::Tensor& parameter, plait::models::Placement placement) override {
    ModuleModel::SetPlacement(parameter, std::move(placement));
  }

 private:
  at::Tensor in_, out_;  // weights (width, in), (1, width)
};

}  // namespace tutorial

#endif  // TUTORIAL_RESIDUAL_NET_H_
