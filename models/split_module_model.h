// The base class of models that support tensor parallelism (parallel/tensor/parallelize.h): the same source runs on
// one rank and split over the tensor axis.
//
//   class Llama final : public SplitModuleModel {
//     std::vector<tensor_parallel::SplitGroup> SplitGroups(int ranks) override;   // which layers, in which groups
//   };
//   PLAIT_RETURN_IF_ERROR(tensor_parallel::Parallelize(llama, mesh, plan, {.sequence_parallel = true}));
//
// Under sequence parallelism the hidden states between blocks are this rank's share of the batch * seq rows, viewed
// as (batch, seq / ranks, width). The sequence length must be a multiple of the ranks.
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

  // Rows (rows, width) of the residual stream to hidden states (batch, rows / batch, width), and back. An empty batch
  // has one position.
  at::Tensor HiddenOf(const tensor_parallel::Residual& rows, std::int64_t batch) const {
    const std::int64_t positions = batch == 0 ? 1 : rows.local().size(0) / batch;
    return rows.local().view({batch, positions, rows.local().size(-1)});
  }
  tensor_parallel::Residual RowsOf(const at::Tensor& hidden) const {
    return tensor_parallel::Residual(hidden.reshape({-1, hidden.size(-1)}));
  }
  // Aborts if sequence parallelism cannot split `seq` tokens.
  void CheckSequence(std::int64_t seq) const {
    PLAIT_CHECK(!tensor_axis_.sequence_parallel() || seq % tensor_axis_.size() == 0)
        << "sequences of " << seq << " tokens for " << tensor_axis_.size()
        << " ranks; sequence parallelism needs a multiple";
  }
  // Aborts unless `targets` are (batch, seq) for the tokens that gave `hidden`.
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
