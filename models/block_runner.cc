#include "models/block_runner.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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

std::vector<ParameterUnit> UnitsByPrefix(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                         const std::string& prefix, std::int64_t blocks) {
  std::vector<ParameterUnit> units = {{.name = "root", .parameters = {}}};
  for (std::int64_t i = 0; i < blocks; ++i) {
    units.push_back({.name = absl::StrCat(prefix, i), .parameters = {}});
  }
  for (const auto& [name, parameter] : parameters) {
    absl::string_view rest = name;
    std::size_t unit = 0;
    if (absl::ConsumePrefix(&rest, prefix)) {
      PLAIT_CHECK(absl::SimpleAtoi(rest.substr(0, rest.find('.')), &unit)) << name;
      ++unit;
    }
    units[unit].parameters.emplace_back(name, parameter);
  }
  return units;
}

std::int64_t CountParameters(const std::vector<ParameterUnit>& units) {
  std::int64_t count = 0;
  for (const ParameterUnit& unit : units) {
    for (const auto& [name, parameter] : unit.parameters) count += parameter.numel();
  }
  return count;
}

}  // namespace plait::models
