#include "tools/report_numbers/metric_names.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace plait::report {
namespace {

bool HasValues(absl::Span<const RunNumbers> runs, const std::string& name) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunNumbers& run) {
    const MetricNumbers* numbers = run.Find(name);
    return numbers != nullptr && numbers->summary.last_place >= 0;
  });
}

}  // namespace

std::vector<std::string> MetricNames(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const RunNumbers& run : runs) {
    for (const MetricNumbers& numbers : run.metrics) {
      if (seen.insert(numbers.metric.name).second) names.push_back(numbers.metric.name);
    }
  }
  return names;
}

std::vector<std::string> MainMetrics(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> chosen;
  for (const char* name : {"loss", "dt", "dtf", "dtb", "sps", "sps_world", "accuracy"}) {
    for (const char* prefix : {"", "train_", "train/"}) {
      const std::string full = absl::StrCat(prefix, name);
      if (HasValues(runs, full)) chosen.push_back(full);
    }
  }
  if (!chosen.empty()) return chosen;
  for (const std::string& name : MetricNames(runs)) {
    if (chosen.size() < 3 && HasValues(runs, name)) chosen.push_back(name);
  }
  return chosen;
}

}  // namespace plait::report
