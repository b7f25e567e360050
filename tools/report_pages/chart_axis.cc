#include "tools/report_pages/chart_axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::report {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kReach = 0.5;
constexpr double kMargin = 0.05;

ChartAxis WithMargin(double low, double high) {
  if (low > high) return {0, 1};
  if (low == high) {
    const double room = low == 0 ? 1 : 0.1 * std::abs(low);
    return {low - room, high + room};
  }
  const double margin = kMargin * (high - low);
  // Times and counts have no axis below 0.
  return {low >= 0 ? std::max(0.0, low - margin) : low - margin, high + margin};
}

struct Unit {
  double size;
  const char* name;
};

Unit UnitFor(double largest, const std::string& units) {
  static constexpr Unit kSeconds[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}};
  static constexpr Unit kBytes[] = {
      {0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1, " B"}};
  static constexpr Unit kPlain[] = {{1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
  if (units == "s") {
    for (const Unit& unit : kSeconds) {
      if (largest >= unit.size) return unit;
    }
    return kSeconds[3];
  }
  if (units == "bytes") {
    for (const Unit& unit : kBytes) {
      if (largest >= unit.size) return unit;
    }
    return kBytes[4];
  }
  for (const Unit& unit : kPlain) {
    if (largest >= unit.size) return {unit.name[0] == 'k' ? 1e3 : unit.size, unit.name};
  }
  return {1, ""};
}

// 1, 2 or 5 times a power of ten, at least `step`.
double RoundUp(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string Label(double scaled, double step, const char* unit) {
  if (std::abs(scaled) < step / 2) return "0";
  const int digits = static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  if (digits > 5) return absl::StrFormat("%.4g%s", scaled, unit);
  return absl::StrFormat("%.*f%s", std::max(0, digits), scaled, unit);
}

}  // namespace

ChartAxis RobustAxis(absl::Span<const Summary* const> series) {
  double core_low = kInfinity, core_high = -kInfinity, low = kInfinity, high = -kInfinity;
  for (const Summary* summary : series) {
    if (summary->finite == 0) continue;
    core_low = std::min(core_low, summary->core_low);
    core_high = std::max(core_high, summary->core_high);
    low = std::min(low, summary->min);
    high = std::max(high, summary->max);
  }
  if (core_low >= core_high) return WithMargin(low, high);
  const double reach = kReach * (core_high - core_low);
  double shown_low = core_low, shown_high = core_high;
  for (const Summary* summary : series) {
    for (const double value : summary->below) {
      if (value >= core_low - reach) shown_low = std::min(shown_low, value);
    }
    for (const double value : summary->above) {
      if (value <= core_high + reach) shown_high = std::max(shown_high, value);
    }
  }
  return WithMargin(shown_low, shown_high);
}

Clipped ClippedBy(const ChartAxis& axis, const Summary& series) {
  Clipped clipped;
  clipped.above = series.above.end() - std::upper_bound(series.above.begin(), series.above.end(), axis.high);
  clipped.below = std::lower_bound(series.below.begin(), series.below.end(), axis.low) - series.below.begin();
  return clipped;
}

std::vector<ChartTick> ChartTicks(const ChartAxis& axis, const std::string& units, int most) {
  const Unit unit = UnitFor(std::max(std::abs(axis.low), std::abs(axis.high)), units);
  const double low = axis.low / unit.size, high = axis.high / unit.size;
  // Below this, neighbours among the doubles are too far apart for steps.
  const double finest = 1e-12 * std::max(std::abs(low), std::abs(high));
  double step = RoundUp(std::max((high - low) / most, finest));
  while (std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1 > most) step = RoundUp(step * 1.5);
  std::vector<ChartTick> ticks;
  for (double at = std::ceil(low / step - 1e-9); at * step <= high * (1 + 1e-12) + 1e-9 * step; ++at) {
    ticks.push_back({at * step * unit.size, Label(at * step, step, unit.name)});
  }
  if (ticks.empty()) ticks.push_back({axis.low, Label(low, step, unit.name)});
  return ticks;
}

}  // namespace plait::report
