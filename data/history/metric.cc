#include "data/history/metric.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace plait::data {

absl::Status CheckMetricName(absl::string_view name) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.';
  };
  const bool begins_well =
      !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  if (begins_well && std::all_of(name.begin(), name.end(), is_plain) && name != "draw")
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "metric \"", name, "\": a name has letters, digits, _ - + . after a letter or _, and is not \"draw\""));
}

bool IsWhole(double value) { return std::abs(value) <= 9007199254740992.0 && value == std::trunc(value); }

std::string DimensionOf(const Metric& metric) {
  if (metric.length == 0) return "";
  return metric.dimension.empty() ? metric.name + "_index" : metric.dimension;
}

}  // namespace plait::data
