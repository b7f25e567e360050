#include "parallel/sharding/unit_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace plait::parallel {

using models::ParameterRole;
using models::ParameterSpec;
using models::ParameterUnit;

namespace {

// Of the whole tensor: ranks with unequal parts of it (experts, a vocabulary) must agree on which parameters are large.
std::int64_t WholeBytes(const ParameterSpec& p) {
  std::int64_t bytes = static_cast<std::int64_t>(p.tensor.element_size());
  for (const std::int64_t size : p.placement.boxes.empty() ? p.tensor.sizes().vec() : p.placement.shape)
    bytes *= size;
  return bytes;
}

}  // namespace

std::vector<UnitPart> PartsOf(const ParameterUnit& unit, Strategy strategy, std::int64_t part_bytes) {
  const bool splits = std::any_of(unit.parameters.begin(), unit.parameters.end(),
                                  [](const ParameterSpec& p) { return !p.placement.boxes.empty(); });
  const bool is_root = unit.block == ParameterUnit::kRoot;
  std::vector<UnitPart> parts(1);
  std::map<std::vector<std::string>, UnitPart> partial;  // by axes
  for (const ParameterSpec& parameter : unit.parameters) {
    if (parameter.role != ParameterRole::kTrained) continue;
    if (splits && !parameter.placement.partial.empty()) {
      partial[parameter.placement.partial].push_back(&parameter);
      continue;
    }
    const bool large = (is_root || !ShardsParameters(strategy)) && WholeBytes(parameter) >= part_bytes;
    large ? parts.push_back({&parameter}) : parts[0].push_back(&parameter);
  }
  for (auto& [axes, part] : partial) parts.push_back(std::move(part));
  if (parts[0].empty() && parts.size() > 1) parts.erase(parts.begin());
  return parts;
}

FlatLayout LayoutOf(const UnitPart& part, int ranks) {
  std::vector<FlatParameter> parameters;
  for (const ParameterSpec* p : part) {
    parameters.push_back({.name = p->name, .shape = p->tensor.sizes().vec(), .decays = p->decays});
  }
  return FlatLayout::Make(std::move(parameters), ranks);
}

}  // namespace plait::parallel
