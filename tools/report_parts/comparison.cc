#include "tools/report_parts/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"

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
  result.verdict = result.high < 1  ? Verdict::kLower
                   : result.low > 1 ? Verdict::kHigher
                                    : Verdict::kWithinSpread;
  return result;
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
  }
  return "";
}

std::string VerdictMethod() {
  return absl::StrCat("Ratios are of medians, to the first run. Interval: 95 % of ", kResamples,
                      " bootstrap resamples of the medians of ", kBlocks,
                      " consecutive blocks of each run; lower or higher: 1 is outside of it.");
}

}  // namespace plait::report
