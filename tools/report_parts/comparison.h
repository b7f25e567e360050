// Is one run's median really different from another's?
//
// Values of a run hang together from step to step, so single steps are no independent samples. A run is cut
// into kBlocks consecutive blocks; the blocks' medians are drawn with replacement (a block bootstrap:
// Kuensch, Annals of Statistics 17, 1989), kResamples times for each run, and the ratio of the resamples'
// means is looked at: its 2.5 and 97.5 percentiles are the interval. The difference is larger than the spread
// when 1 is outside of the interval. The random numbers are the same in each call.
#ifndef PLAIT_TOOLS_REPORT_PARTS_COMPARISON_H_
#define PLAIT_TOOLS_REPORT_PARTS_COMPARISON_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"
#include "tools/report_parts/summary.h"

namespace plait::report {

inline constexpr int kResamples = 1000;
// Runs with fewer finite values are not judged.
inline constexpr int kFewestValues = 8;

enum class Verdict {
  kTooFew,        // values
  kNoRatio,       // a median is zero, not there, or of the other sign
  kWithinSpread,  // 1 is in the interval
  kLower,         // than the first run
  kHigher,
};

struct Ratio {
  double ratio = kNaN;             // of the medians, other / first
  double low = kNaN, high = kNaN;  // of the interval; NaN with kTooFew and kNoRatio
  Verdict verdict = Verdict::kNoRatio;
};

Ratio Compare(const Summary& first, const Summary& other);

// "lower", "higher", "within the spread", "too few values", "no ratio".
std::string VerdictText(Verdict verdict);

// How the verdict is found, for the foot of a table.
std::string VerdictMethod();

// A run's attributes, with the line in attribute `settings` taken apart.
NamedTexts SettingsOf(const NamedTexts& attributes);

struct ChangedSetting {
  std::string name;
  std::vector<std::string> values;  // by run; "-" where a run does not have it
};

// Settings that are not the same in all runs, in the order of the first run that has them. What differs from
// run to run anyway (when it started, its command, its other files) is left out.
std::vector<ChangedSetting> ChangedSettings(absl::Span<const NamedTexts> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_COMPARISON_H_
