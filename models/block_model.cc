#include "models/block_model.h"

#include <ATen/ops/cat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::models {

BlockState RunBlocks(BlockModel& model, const Batch& batch, const BlockRunner& run,
                     const BlockContext& context) {
  const std::vector<std::shared_ptr<Block>>& blocks = model.blocks();
  BlockState state = model.Prologue(batch, context);
  BlockContext at_block = context;
  at_block.random = batch.random;
  at_block.sequence = batch.sequence;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    at_block.step = static_cast<std::int64_t>(i);
    state = run ? run(i, state, at_block) : blocks[i]->Forward(state, at_block);
  }
  return state;
}

LossSum RunModel(BlockModel& model, const Batch& batch, const BlockRunner& run) {
  return model.Epilogue(RunBlocks(model, batch, run), batch);
}

at::Tensor RunOutput(BlockModel& model, const Batch& batch, const BlockRunner& run,
                     const BlockContext& context) {
  return model.Output(RunBlocks(model, batch, run, context));
}

std::vector<ParameterUnit> UnitsByPrefix(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                         const std::vector<std::string>& prefixes) {
  std::vector<ParameterUnit> units = {{.name = "root", .parameters = {}}};
  for (const std::string& prefix : prefixes) {
    units.push_back({.name = prefix, .parameters = {}, .block = static_cast<int>(units.size()) - 1});
  }
  for (const auto& [name, parameter] : parameters) {
    std::size_t unit = prefixes.size();
    while (unit > 0 && !absl::StartsWith(name, absl::StrCat(prefixes[unit - 1], "."))) --unit;
    units[unit].parameters.push_back(
        {.name = name,
         .tensor = parameter,
         .decays = DecaysByDefault(parameter),
         .role = parameter.requires_grad() ? ParameterRole::kTrained : ParameterRole::kFrozen});
  }
  return units;
}

std::int64_t CountParameters(const std::vector<ParameterUnit>& units) {
  std::int64_t count = 0;
  for (const ParameterUnit& unit : units) {
    for (const ParameterSpec& parameter : unit.parameters) {
      if (parameter.role != ParameterRole::kBuffer) count += parameter.tensor.numel();
    }
  }
  return count;
}

void Materialize(const at::Tensor& parameter, const at::Tensor& data) {
  PLAIT_CHECK(parameter.sizes() == data.sizes())
      << "data of shape " << data.sizes() << " for a parameter of shape " << parameter.sizes();
  PLAIT_CHECK(parameter.is_leaf() && !data.requires_grad());
  // What set_data() does after it has refused meta tensors.
  parameter.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

at::Tensor LocalPart(const at::Tensor& whole, const Placement& placement) {
  if (placement.boxes.empty()) return whole.clone();
  std::vector<at::Tensor> parts;
  for (const Box& box : placement.boxes) {
    at::Tensor part = whole;
    for (std::int64_t d = 0; d < whole.dim(); ++d) part = part.narrow(d, box.begin[d], box.size[d]);
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts[0].clone(at::MemoryFormat::Contiguous) : at::cat(parts);
}

void KeepLocalPart(const at::Tensor& parameter, const Placement& placement) {
  PLAIT_CHECK(parameter.is_leaf() && !parameter.grad().defined());
  const at::Tensor part = LocalPart(parameter.detach(), placement);
  parameter.unsafeGetTensorImpl()->shallow_copy_from(part.getIntrusivePtr());
}

}  // namespace plait::models
