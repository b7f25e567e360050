#include "tools/report_numbers/metric_names.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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
      const std::string& name = numbers.metric.name;
      if (MeanOfSpread(run, name).empty() && seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

std::string MeanOfSpread(const RunNumbers& run, const std::string& name) {
  absl::string_view mean = name;
  for (const char* suffix : {"_min", "_max", "_std"}) {
    if (absl::ConsumeSuffix(&mean, suffix) && run.Find(std::string(mean)) != nullptr)
      return std::string(mean);
  }
  return "";
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
