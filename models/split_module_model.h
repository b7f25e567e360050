// The base class of models whose layers can be split over the tensor axis (parallel/tensor/parallelize.h): the
// same source runs whole and split.
//
//   class Llama final : public SplitModuleModel {
//     ... SplitGroups(int ranks) override;    // which layers, in which groups
//   };
//   PLAIT_RETURN_IF_ERROR(tensor_parallel::Parallelize(llama, mesh, plan, {.sequence_parallel = true}));
//
// Under sequence parallelism hidden states between blocks are this rank's rows of the batch * seq ones, viewed
// as (batch, seq / ranks, width); sequences are a multiple of the ranks.
#ifndef PLAIT_MODELS_SPLIT_MODULE_MODEL_H_
#define PLAIT_MODELS_SPLIT_MODULE_MODEL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "models/module_model.h"
#include "parallel/tensor/parallelize.h"
#include "parallel/tensor/values.h"

namespace plait::models {

class SplitModuleModel : public ModuleModel, public tensor_parallel::SplittableModel {
 public:
  std::vector<ParameterUnit> units() const override { return ModuleModel::units(); }
  void SetPlacement(const at::Tensor& parameter, Placement placement) final {
    ModuleModel::SetPlacement(parameter, std::move(placement));
  }
  void UseTensorAxis(const tensor_parallel::TensorAxis& axis) override { tensor_axis_ = axis; }
  const tensor_parallel::TensorAxis& tensor_axis() const { return tensor_axis_; }

 protected:
  using ModuleModel::ModuleModel;

  // (rows, width) of the residual stream <-> hidden states. No samples have one position.
  at::Tensor HiddenOf(const tensor_parallel::Residual& rows, std::int64_t batch) const {
    const std::int64_t positions = batch == 0 ? 1 : rows.local().size(0) / batch;
    return rows.local().view({batch, positions, rows.local().size(-1)});
  }
  tensor_parallel::Residual RowsOf(const at::Tensor& hidden) const {
    return tensor_parallel::Residual(hidden.reshape({-1, hidden.size(-1)}));
  }
  // Aborts where sequences of `seq` tokens cannot be split.
  void CheckSequence(std::int64_t seq) const {
    PLAIT_CHECK(!tensor_axis_.sequence_parallel() || seq % tensor_axis_.size() == 0)
        << "sequences of " << seq << " tokens for " << tensor_axis_.size()
        << " ranks; sequence parallelism needs a multiple";
  }
  // Aborts where `targets` are not (batch, seq) of the tokens that gave `hidden`.
  void CheckTargets(const at::Tensor& targets, const at::Tensor& hidden) const {
    const std::int64_t ranks = tensor_axis_.sequence_parallel() ? tensor_axis_.size() : 1;
    PLAIT_CHECK(targets.dim() == 2 && targets.size(0) == hidden.size(0) &&
                targets.size(1) == hidden.size(1) * ranks)
        << "targets of shape " << targets.sizes() << " for hidden states of shape " << hidden.sizes();
  }

 private:
  tensor_parallel::TensorAxis tensor_axis_;
};

}  // namespace plait::models

#endif  // PLAIT_MODELS_SPLIT_MODULE_MODEL_H_
