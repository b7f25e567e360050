#include "data/plot/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace plait::data {
namespace {

using Limits = std::numeric_limits<double>;

constexpr std::size_t kFewValues = 20;
constexpr double kMargin = 0.05;
// Values up to this fraction of the range beyond it are shown: the curve keeps at least half of the height.
constexpr double kReach = 0.5;
constexpr double kLeastStep = 1e-322;

struct Interval {
  double low = Limits::infinity();
  double high = -Limits::infinity();

  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Values in the coordinates in which the axis is linear.
std::vector<double> Linear(const std::vector<double>& values, bool logarithmic) {
  std::vector<double> linear;
  for (const double value : values) {
    if (std::isfinite(value) && !(logarithmic && value <= 0)) {
      linear.push_back(logarithmic ? std::log10(value) : value);
    }
  }
  return linear;
}

// From percentile 1 to 99, both values that occur. Reorders.
void IncludePercentiles(std::vector<double>& values, Interval& interval) {
  if (values.size() < kFewValues) {
    for (const double value : values) interval.Include(value);
    return;
  }
  const double last = static_cast<double>(values.size() - 1);
  for (const double index : {std::ceil(0.01 * last), std::floor(0.99 * last)}) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(values.begin(), place, values.end());
    interval.Include(*place);
  }
}

Interval RangeOf(std::vector<std::vector<double>>& series, bool robust) {
  Interval core, shown, whole;
  for (std::vector<double>& values : series) IncludePercentiles(values, core);
  const double reach = kReach * (core.high - core.low);
  for (const std::vector<double>& values : series) {
    for (const double value : values) {
      whole.Include(value);
      if (value >= core.low - reach && value <= core.high + reach) shown.Include(value);
    }
  }
  // For a series that is constant except for outliers, show the outliers.
  return robust && core.low < core.high ? shown : whole;
}

Axis FromInterval(Interval interval, bool logarithmic, double margin) {
  if (interval.low > interval.high) interval = {0, 1};
  const bool positive = interval.low >= 0;
  double extra = margin * (interval.high - interval.low);
  if (interval.high == interval.low) {
    extra = logarithmic ? 0.1 : 0.1 * std::abs(interval.low);
    // A value of 0, or one so large or small that a tenth of it is lost.
    if (extra == 0 || interval.low - extra == interval.low) extra = 1;
  }
  interval.low -= extra;
  interval.high += extra;
  if (logarithmic) {
    const double low = std::clamp(std::pow(10, interval.low), Limits::min(), Limits::max() / 10);
    return {low, std::clamp(std::pow(10, interval.high), 2 * low, Limits::max()), true};
  }
  // Axes of non-negative values, such as times and counts, do not extend below 0.
  if (positive) interval.low = std::max(interval.low, 0.0);
  return {std::max(interval.low, -Limits::max() / 4), std::min(interval.high, Limits::max() / 4)};
}

// 1, 2 or 5 times a power of ten, at least `step`.
double RoundUp(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// With the digits that a distance of `step` needs.
std::string LinearLabel(double value, double step, double largest, absl::string_view suffix) {
  if (std::abs(value) < step / 2) return "0";
  const int step_digit = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  if (largest >= 1e6 || largest < 1e-3) {
    const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9)) - step_digit;
    return absl::StrCat(base::ShortExponent(absl::StrFormat("%.*e", std::max(0, digits), value)), suffix);
  }
  if (step_digit >= 0) return absl::StrCat(base::FormatCount(std::llround(value)), suffix);
  return absl::StrFormat("%.*f%s", -step_digit, value, suffix);
}

std::vector<Tick> LinearTicks(const Axis& axis, int most) {
  const base::Unit unit = base::UnitFor(std::max(std::abs(axis.low), std::abs(axis.high)), axis.unit);
  const double low = axis.low / unit.size, high = axis.high / unit.size;
  const double largest = std::max(std::abs(low), std::abs(high));
  // Below this, neighbouring doubles are too far apart for steps, or the power of ten would be 0.
  double step = RoundUp(std::max({(high - low) / most, 1e-12 * largest, kLeastStep}));
  while (std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1 > most) step = RoundUp(1.5 * step);
  std::vector<Tick> ticks;
  for (double index = std::ceil(low / step - 1e-9); index * step <= high + 1e-9 * step; ++index) {
    const double value = index * step;
    ticks.push_back({value * unit.size, LinearLabel(value, step, largest, unit.suffix)});
  }
  return ticks;
}

std::vector<Tick> WholeTicks(const Axis& axis, int most) {
  std::vector<Tick> ticks;
  for (const Tick& tick : LinearTicks(axis, most)) {
    const double whole = std::round(tick.value);
    if (std::abs(tick.value - whole) > 1e-6) continue;
    ticks.push_back({whole, std::abs(whole) < 1e6 ? base::FormatCount(std::llround(whole)) : tick.label});
  }
  return ticks;
}

std::string LogLabel(double value, const std::string& unit) {
  if (unit == "s" || unit == "bytes") return base::FormatQuantity(value, unit);
  if (value >= 1e-3 && value < 1e5) return absl::StrFormat("%.6g", value);
  return base::ShortExponent(absl::StrFormat("%.0e", value));
}

// Powers of ten, for bytes powers of two; linear ticks if fewer than two of them are on the axis.
std::vector<Tick> LogTicks(const Axis& axis, int most) {
  const double base = axis.unit == "bytes" ? 2 : 10;
  const double first = std::log(axis.low) / std::log(base), last = std::log(axis.high) / std::log(base);
  std::vector<Tick> ticks;
  for (int stride = 1; stride == 1 || static_cast<int>(ticks.size()) > most; ++stride) {
    ticks.clear();
    for (double i = std::ceil(first / stride - 1e-9); i <= last / stride + 1e-9; ++i) {
      const double value = std::pow(base, i * stride);
      ticks.push_back({value, LogLabel(value, axis.unit)});
    }
  }
  return ticks.size() < 2 ? LinearTicks(axis, most) : ticks;
}

}  // namespace

double Axis::Position(double value) const {
  if (std::isnan(value) || (logarithmic && value <= 0)) return Limits::quiet_NaN();
  if (std::isinf(value)) return value;
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::vector<Tick> Ticks(const Axis& axis, int most) {
  if (axis.whole) return WholeTicks(axis, most);
  return axis.logarithmic ? LogTicks(axis, most) : LinearTicks(axis, most);
}

Axis AxisFor(absl::Span<const std::vector<double>* const> values, bool logarithmic, AxisRange range) {
  std::vector<std::vector<double>> linear;
  for (const std::vector<double>* series : values) linear.push_back(Linear(*series, logarithmic));
  const Interval interval = RangeOf(linear, range == AxisRange::kRobust);
  return FromInterval(interval, logarithmic, range == AxisRange::kExact ? 0 : kMargin);
}

}  // namespace plait::data
