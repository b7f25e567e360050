// Whether the medians of two runs differ significantly, and which settings of runs differ.
//
// Values of consecutive steps are correlated, so that single steps are not independent samples. A run is cut into
// kBlocks consecutive blocks. The blocks' medians are resampled with replacement (a block bootstrap: Kuensch, Annals of
// Statistics 17, 1989), kResamples times for each run; the interval is from the 2.5th to the 97.5th percentile of the
// ratio of the resamples' means, extended to include the ratio of the medians. The difference exceeds the spread if 1
// is outside the interval. Deterministic: every call uses the same random numbers.
#ifndef PLAIT_TOOLS_REPORT_PARTS_COMPARISON_H_
#define PLAIT_TOOLS_REPORT_PARTS_COMPARISON_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"
#include "tools/report_parts/summary.h"

namespace plait::report {

inline constexpr int kResamples = 1000;
// Runs with fewer finite values get the verdict kTooFew.
inline constexpr int kFewestValues = 8;

enum class Verdict {
  kTooFew,        // too few values
  kNoRatio,       // a median is zero or missing, or the signs differ
  kWithinSpread,  // 1 is in the interval
  kLower,         // the other run is lower than the first
  kHigher,
  kOtherUnits,  // the runs give the metric in units that cannot be converted
};

struct Ratio {
  double ratio = kNaN;             // of the medians, other / first
  double low = kNaN, high = kNaN;  // of the interval; NaN with kTooFew, kNoRatio and kOtherUnits
  Verdict verdict = Verdict::kNoRatio;
};

Ratio Compare(const Summary& first, const Summary& other);

// Whether the draws of two runs cover different numbers of steps, so that sums over a draw are compared per step.
bool AreComparedPerStep(const MetricNumbers& first, const MetricNumbers& other);

// The same for a metric of two runs, with `other` in the units of `first`; per step where AreComparedPerStep().
Ratio Compare(const MetricNumbers& first, const MetricNumbers& other);

// The numbers in the units of `metric`; nothing where they cannot be converted (FactorBetween in time_units.h).
std::optional<MetricNumbers> InUnitsOf(const data::TableMetric& metric, const MetricNumbers& numbers);

// "lower", "higher", "within the spread", "too few values", "no ratio", "other units".
std::string VerdictText(Verdict verdict);

// How the verdict is found, for the footnote of a table.
std::string VerdictMethod();

// A run's attributes, with the line in attribute `settings` parsed into single settings.
NamedTexts SettingsOf(const NamedTexts& attributes);

struct ChangedSetting {
  std::string name;
  std::vector<std::string> values;  // by run; "-" where a run does not have it
};

// Settings that differ between runs, in the order of the first run that has them. What always differs (start time,
// command, output paths) is left out.
std::vector<ChangedSetting> ChangedSettings(absl::Span<const NamedTexts> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_COMPARISON_H_
