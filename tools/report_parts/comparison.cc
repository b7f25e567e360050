#include "tools/report_parts/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

double ResampledMean(const std::vector<double>& values, std::mt19937_64& random) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
  return sum / static_cast<double>(values.size());
}

bool HaveRatio(double first, double other) {
  return std::isfinite(first) && std::isfinite(other) && first != 0 && other != 0 &&
         std::signbit(first) == std::signbit(other);
}

// Attributes that differ between any two runs, or that settings determine.
bool IsIncidental(const std::string& name) {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "command",      "started",  "trace",    "launch_command",   "folder",  "history",
      "report",       "complete", "finished", "outputs",          "csv",     "json_lines",
      "tensorboard",  "html",     "settings", "resumed_at_draws", "resumed", "resumed_at_draw",
      "began_at_step"};
  return names.count(name) > 0;
}

Summary Scaled(Summary summary, double factor) {
  for (double* number : {&summary.mean, &summary.min, &summary.max, &summary.last, &summary.p10,
                         &summary.median, &summary.p90}) {
    *number *= factor;
  }
  for (double& median : summary.block_medians) median *= factor;
  summary.whole = false;
  return summary;
}

}  // namespace

Ratio Compare(const Summary& first, const Summary& other) {
  Ratio result;
  if (!HaveRatio(first.median, other.median)) return result;
  result.ratio = other.median / first.median;
  if (first.finite < kFewestValues || other.finite < kFewestValues) {
    result.verdict = Verdict::kTooFew;
    return result;
  }
  std::mt19937_64 random(20240717);
  std::vector<double> ratios;
  for (int i = 0; i < kResamples; ++i) {
    const double below = ResampledMean(first.block_medians, random);
    const double above = ResampledMean(other.block_medians, random);
    if (HaveRatio(below, above)) ratios.push_back(above / below);
  }
  if (ratios.empty()) return result;
  result.low = std::min(result.ratio, Quantile(ratios, 0.025));
  result.high = std::max(result.ratio, Quantile(ratios, 0.975));
  if (result.low <= 1 && result.high >= 1) {
    result.verdict = Verdict::kWithinSpread;
  } else {
    // Of negative values the one with the smaller ratio is the higher.
    result.verdict = (result.high < 1) == (first.median > 0) ? Verdict::kLower : Verdict::kHigher;
  }
  return result;
}

bool AreComparedPerStep(const MetricNumbers& first, const MetricNumbers& other) {
  const double steps = first.summary.median / first.per_step.median,
               other_steps = other.summary.median / other.per_step.median;
  return std::isfinite(steps) && std::isfinite(other_steps) && std::abs(other_steps / steps - 1) > 0.01;
}

Ratio Compare(const MetricNumbers& first, const MetricNumbers& other) {
  const std::optional<MetricNumbers> converted = InUnitsOf(first.metric, other);
  if (!converted.has_value()) return {.verdict = Verdict::kOtherUnits};
  if (AreComparedPerStep(first, other)) return Compare(first.per_step, converted->per_step);
  return Compare(first.summary, converted->summary);
}

std::optional<MetricNumbers> InUnitsOf(const data::TableMetric& metric, const MetricNumbers& numbers) {
  const double factor = FactorBetween(numbers.metric, metric);
  if (factor == 0) return std::nullopt;
  if (factor == 1) return numbers;
  MetricNumbers converted = numbers;
  converted.metric.units = metric.units;
  converted.summary = Scaled(numbers.summary, factor);
  converted.per_step = Scaled(numbers.per_step, factor);
  return converted;
}

std::string VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTooFew:
      return "too few values";
    case Verdict::kNoRatio:
      return "no ratio";
    case Verdict::kWithinSpread:
      return "within the spread";
    case Verdict::kLower:
      return "lower";
    case Verdict::kHigher:
      return "higher";
    case Verdict::kOtherUnits:
      return "other units";
  }
  return "";
}

std::string VerdictMethod() {
  return absl::StrCat("Ratios are of medians, to the first run. Interval: 95 % of ", kResamples,
                      " bootstrap resamples of the medians of ", kBlocks,
                      " consecutive blocks of each run; lower or higher: 1 is outside of it.");
}

NamedTexts SettingsOf(const NamedTexts& attributes) {
  NamedTexts settings;
  for (const auto& [name, value] : attributes) {
    if (name != "settings") settings.emplace_back(name, value);
  }
  for (const auto& [name, value] : attributes) {
    if (name != "settings") continue;
    for (auto& setting : data::ParseSettings(value)) settings.push_back(std::move(setting));
  }
  return data::LastValues(settings);
}

std::vector<ChangedSetting> ChangedSettings(absl::Span<const NamedTexts> runs) {
  std::vector<std::map<std::string, std::string>> values;  // by run
  for (const NamedTexts& run : runs) values.emplace_back(run.begin(), run.end());
  std::vector<ChangedSetting> changed;
  std::set<std::string> seen;
  for (const NamedTexts& run : runs) {
    for (const auto& [name, value] : run) {
      if (IsIncidental(name) || !seen.insert(name).second) continue;
      ChangedSetting setting = {name, {}};
      for (const auto& other : values) {
        const auto found = other.find(name);
        setting.values.push_back(found == other.end() ? "-" : found->second);
      }
      const bool same = std::all_of(setting.values.begin(), setting.values.end(),
                                    [&](const std::string& text) { return text == setting.values[0]; });
      if (!same) changed.push_back(std::move(setting));
    }
  }
  return changed;
}

}  // namespace plait::report
