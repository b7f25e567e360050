#include "models/module_model.h"

#include <torch/nn/module.h>

#include "absl/strings/match.h"

namespace plait::models {

std::vector<ParameterUnit> ModuleModel::units() const {
  std::vector<std::string> names = block_names_;
  for (const ParameterUnit& unit : further_units_) names.push_back(unit.name);
  std::vector<ParameterUnit> units = UnitsByPrefix(module_->named_parameters().pairs(), names);
  for (std::size_t i = 0; i < further_units_.size(); ++i) {
    ParameterUnit& unit = units[1 + blocks_.size() + i];
    unit.block = further_units_[i].block;
    unit.replicate_axis = further_units_[i].replicate_axis;
    unit.shard_axis = further_units_[i].shard_axis;
  }
  for (ParameterUnit& unit : units) {
    for (ParameterSpec& spec : unit.parameters) {
      spec.placement = PlacementOf(spec.tensor);
      if (never_decay_.count(spec.tensor.unsafeGetTensorImpl()) > 0) spec.decays = false;
    }
  }
  const std::vector<ParameterUnit> buffers = UnitsByPrefix(module_->named_buffers().pairs(), names);
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (ParameterSpec buffer : buffers[unit].parameters) {
      buffer.placement = PlacementOf(buffer.tensor);
      buffer.decays = false;
      buffer.role = ParameterRole::kBuffer;
      units[unit].parameters.push_back(std::move(buffer));
    }
  }
  for (ParameterSpec& parameter : units[0].parameters) {
    for (const auto& [name, end] : ends_) {
      if (parameter.name == name || absl::StartsWith(parameter.name, name + ".")) parameter.used_by = end;
    }
  }
  return units;
}

void ModuleModel::SetPlacement(const at::Tensor& parameter, Placement placement) {
  placements_[parameter.unsafeGetTensorImpl()] = std::move(placement);
}

const Placement& ModuleModel::PlacementOf(const at::Tensor& parameter) const {
  static const Placement whole;
  const auto found = placements_.find(parameter.unsafeGetTensorImpl());
  return found == placements_.end() ? whole : found->second;
}

void ModuleModel::SetUsedBy(UsedBy end, const std::vector<std::string>& names) {
  for (const std::string& name : names) ends_.emplace_back(name, end);
}

void ModuleModel::SetTraining(bool training) { module_->train(training); }

std::vector<at::Tensor> ModuleModel::parameters() const { return module_->parameters(); }

void ModuleModel::AddUnit(const std::string& name, int block, const std::string& replicate_axis,
                          const std::string& shard_axis) {
  further_units_.push_back({.name = name,
                            .parameters = {},
                            .block = block,
                            .replicate_axis = replicate_axis,
                            .shard_axis = shard_axis});
}

void ModuleModel::AddBlock(const std::string& name, std::shared_ptr<Block> block) {
  block_names_.push_back(name);
  blocks_.push_back(std::move(block));
}

}  // namespace plait::models
