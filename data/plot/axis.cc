#include "data/plot/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace plait::data {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// A series shorter than this has no percentiles 1 and 99 to speak of.
constexpr std::size_t kFewValues = 20;
constexpr double kMargin = 0.05;
// Values that lie this share of the span outside it are shown after all: the curve keeps half the height.
constexpr double kReach = 0.5;

// Percentiles and margins are taken in these coordinates, in which the axis is straight.
double Straight(double value, bool logarithmic) {
  if (!std::isfinite(value) || (logarithmic && value <= 0)) return kNone;
  return logarithmic ? std::log10(value) : value;
}

struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return low > high; }
  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::vector<double> StraightValues(const std::vector<double>& values, bool logarithmic) {
  std::vector<double> straight;
  straight.reserve(values.size());
  for (const double value : values) {
    if (const double at = Straight(value, logarithmic); !std::isnan(at)) straight.push_back(at);
  }
  return straight;
}

// From percentile 1 to 99, both values that occur. Reorders.
void IncludePercentiles(std::vector<double>& values, Span& span) {
  if (values.size() < kFewValues) {
    for (const double value : values) span.Include(value);
    return;
  }
  const double last = static_cast<double>(values.size() - 1);
  for (const double index : {std::ceil(0.01 * last), std::floor(0.99 * last)}) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(values.begin(), place, values.end());
    span.Include(*place);
  }
}

Span RobustSpan(std::vector<std::vector<double>>& series) {
  Span core, shown, whole;
  for (std::vector<double>& values : series) IncludePercentiles(values, core);
  const double reach = kReach * (core.high - core.low);
  for (const std::vector<double>& values : series) {
    for (const double value : values) {
      whole.Include(value);
      if (value >= core.low - reach && value <= core.high + reach) shown.Include(value);
    }
  }
  // Of a constant, the exceptions are all there is to see.
  return core.low == core.high ? whole : shown;
}

Axis AxisFromSpan(Span span, bool logarithmic, double margin) {
  if (span.empty()) span = {0, 1};
  const bool positive = span.low >= 0;
  double extra = margin * (span.high - span.low);
  if (span.high == span.low) {
    extra = logarithmic ? 0.1 : 0.1 * std::abs(span.low);
    // A value of 0, or one so large or small that a tenth of it is lost.
    if (extra == 0 || span.low - extra == span.low) extra = 1;
  }
  span.low -= extra;
  span.high += extra;
  using Limits = std::numeric_limits<double>;
  if (logarithmic) {
    const double low = std::clamp(std::pow(10, span.low), Limits::min(), Limits::max() / 10);
    return {low, std::clamp(std::pow(10, span.high), 2 * low, Limits::max()), true, false};
  }
  // Times and counts have no axis below 0.
  if (positive) span.low = std::max(span.low, 0.0);
  return {std::max(span.low, -Limits::max() / 4), std::min(span.high, Limits::max() / 4), false, false};
}

// Steps worth a tick, ascending: 1, 2 or 5 times powers of ten, or powers of two. `place` counts them.
double RoundStep(int place, bool bytes) {
  if (bytes) return std::exp2(place);
  const int decade = place >= 0 ? place / 3 : -((2 - place) / 3);
  static constexpr double kFactors[] = {1, 2, 5};
  return kFactors[place - 3 * decade] * std::pow(10, decade);
}

// The finest step with at most `most` multiples within the axis.
double FinestStep(const Axis& axis, int most) {
  const double span = axis.high - axis.low;
  int place = static_cast<int>(axis.bytes ? std::floor(std::log2(span / most))
                                          : 3 * std::floor(std::log10(span / most)));
  for (;; ++place) {
    const double step = RoundStep(place, axis.bytes);
    if (std::floor(axis.high / step + 1e-9) - std::ceil(axis.low / step - 1e-9) + 1 <= most) return step;
  }
}

std::string TidyExponent(const std::string& text) {
  return absl::StrReplaceAll(text, {{"e+0", "e"}, {"e+", "e"}, {"e-0", "e-"}});
}

std::string Bytes(double value, int digits) {
  if (value == 0) return "0";
  static constexpr const char* kPrefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  int prefix = 0;
  while (std::abs(value) >= 1024 && prefix < 5) {
    value /= 1024;
    ++prefix;
  }
  return TidyExponent(absl::StrFormat("%.*g%s", digits, value, kPrefixes[prefix]));
}

// All ticks with as many digits as their distance asks for.
std::string LinearLabel(double value, double step, double largest) {
  if (std::abs(value) < 1e-9 * step) return "0";
  const int step_digit = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  if (largest < 1e6 && largest >= 1e-3) return absl::StrFormat("%.*f", std::max(0, -step_digit), value);
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9)) - step_digit;
  return TidyExponent(absl::StrFormat("%.*e", std::max(0, digits), value));
}

std::vector<Tick> LinearTicks(const Axis& axis, int most) {
  const double step = FinestStep(axis, most);
  std::vector<Tick> ticks;
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  for (double index = std::ceil(axis.low / step - 1e-9); index * step <= axis.high + 1e-9 * step; ++index) {
    const double value = index * step;
    ticks.push_back({value, axis.bytes ? Bytes(value, 5) : LinearLabel(value, step, largest)});
  }
  return ticks;
}

std::vector<Tick> PowersOfTwo(const Axis& axis, int most) {
  const int first = static_cast<int>(std::ceil(std::log2(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(axis.high) + 1e-9));
  for (const int step : {1, 2, 3, 5, 10, 20}) {
    std::vector<Tick> ticks;
    const int begin = static_cast<int>(std::ceil(static_cast<double>(first) / step)) * step;
    for (int e = begin; e <= last; e += step) ticks.push_back({std::exp2(e), Bytes(std::exp2(e), 4)});
    if (static_cast<int>(ticks.size()) <= most) return ticks;
  }
  return {};
}

// 1, 10, 100 as such; the small and the large as powers.
std::string LogLabel(double value) {
  return value >= 1e-3 && value < 1e5 ? absl::StrFormat("%.6g", value)
                                      : TidyExponent(absl::StrFormat("%.0e", value));
}

std::vector<Tick> DecadeTicks(const Axis& axis, int most, const std::vector<int>& factors, int step) {
  std::vector<Tick> ticks;
  const int first = static_cast<int>(std::floor(std::log10(axis.low) - 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(axis.high) + 1e-9));
  for (int decade = first; decade <= last; ++decade) {
    if (decade % step != 0) continue;
    for (const int factor : factors) {
      const double value = factor * std::pow(10, decade);
      if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9)) {
        ticks.push_back({value, LogLabel(value)});
      }
    }
  }
  if (static_cast<int>(ticks.size()) > most) ticks.clear();
  return ticks;
}

std::vector<Tick> LogTicks(const Axis& axis, int most) {
  if (axis.bytes) return PowersOfTwo(axis, most);
  for (const std::vector<int>& factors : {std::vector<int>{1, 2, 5}, std::vector<int>{1}}) {
    if (auto ticks = DecadeTicks(axis, most, factors, 1); ticks.size() >= 2) return ticks;
  }
  for (const int step : {2, 3, 5, 10, 20, 50, 100}) {
    if (auto ticks = DecadeTicks(axis, most, {1}, step); ticks.size() >= 2) return ticks;
  }
  return LinearTicks(axis, most);  // less than a decade
}

}  // namespace

double Axis::Position(double value) const {
  if (std::isnan(value) || (logarithmic && value <= 0)) return kNone;
  if (std::isinf(value)) return value;
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::vector<Tick> Ticks(const Axis& axis, int most) {
  return axis.logarithmic ? LogTicks(axis, most) : LinearTicks(axis, most);
}

Axis FullAxis(absl::Span<const std::vector<double>* const> values, bool logarithmic) {
  Span span;
  for (const std::vector<double>* series : values) {
    for (const double at : StraightValues(*series, logarithmic)) span.Include(at);
  }
  return AxisFromSpan(span, logarithmic, 0);
}

Axis AxisOfValues(absl::Span<const std::vector<double>* const> values, bool logarithmic, bool robust) {
  std::vector<std::vector<double>> straight;
  straight.reserve(values.size());
  for (const std::vector<double>* series : values) straight.push_back(StraightValues(*series, logarithmic));
  Span span;
  if (robust) {
    span = RobustSpan(straight);
  } else {
    for (const std::vector<double>& series : straight) {
      for (const double value : series) span.Include(value);
    }
  }
  return AxisFromSpan(span, logarithmic, kMargin);
}

std::string Short(double value, bool bytes) {
  if (bytes && std::isfinite(value)) return Bytes(value, 4);
  return TidyExponent(absl::StrFormat("%.3g", value));
}

}  // namespace plait::data
