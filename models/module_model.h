// A BlockModel whose parameters are those of an ordinary torch::nn::Module: the base class of models.
//
//   class Mlp final : public ModuleModel {
//    public:
//     explicit Mlp(const MlpOptions& options) : ModuleModel(std::make_shared<torch::nn::Module>("Mlp")) {
//       AddBlock("layer0", module()->register_module("layer0", std::make_shared<Layer>(...)));
//       ...
//     }
//   };
//
//   Mlp mlp({.widths = {8, 4, 2}});
//   at::Tensor y = mlp.Forward(x);
//
// A block is usually a torch::nn::Module too, so that one object is registered and run. Models can be moved but
// not copied; handles to parameters, blocks and module stay valid after a move. Local.
#ifndef PLAIT_MODELS_MODULE_MODEL_H_
#define PLAIT_MODELS_MODULE_MODEL_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/block_model.h"

namespace torch::nn {
class Module;
}

namespace plait::models {

class ModuleModel : public BlockModel {
 public:
  const std::vector<std::shared_ptr<Block>>& blocks() const override { return blocks_; }
  // The root unit, the blocks, then units of AddUnit. Names are those of the state dict.
  std::vector<ParameterUnit> units() const override;
  void SetTraining(bool training) override;

  // Output() of the plain forward pass; recorded by autograd.
  at::Tensor Forward(const at::Tensor& inputs) { return RunOutput(*this, {.inputs = inputs, .targets = {}}); }

  // Sets the placement that units() reports; by default the whole parameter is local.
  void SetPlacement(const at::Tensor& parameter, Placement placement);
  const Placement& PlacementOf(const at::Tensor& parameter) const;

  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  // In state-dict order.
  std::vector<at::Tensor> parameters() const;

 protected:
  explicit ModuleModel(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {}
  ModuleModel(ModuleModel&&) = default;
  ModuleModel& operator=(ModuleModel&&) = default;

  // `name`: prefix of the block in the state dict, such as "transformer.h.0".
  void AddBlock(const std::string& name, std::shared_ptr<Block> block);
  // Makes the parameters and buffers of block `block` whose names begin with `name` and "." a separate unit, after
  // those of all blocks, with other mesh axes (experts).
  void AddUnit(const std::string& name, int block, const std::string& replicate_axis,
               const std::string& shard_axis);
  // Exempts a parameter of two or more dimensions from weight decay.
  void NeverDecay(const at::Tensor& parameter) { never_decay_.insert(parameter.unsafeGetTensorImpl()); }
  // Names of root parameters or modules that only one end of the model reads.
  void SetUsedBy(UsedBy end, const std::vector<std::string>& names);

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<std::string> block_names_;
  std::map<const c10::TensorImpl*, Placement> placements_;
  std::vector<ParameterUnit> further_units_;  // without parameters
  std::set<const c10::TensorImpl*> never_decay_;
  std::vector<std::pair<std::string, UsedBy>> ends_;
};

}  // namespace plait::models

#endif  // PLAIT_MODELS_MODULE_MODEL_H_
