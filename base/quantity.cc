#include "base/quantity.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace plait::base {
namespace {

// Integers below a million in full; from ten thousand on with separators: 41234.5 is "41,230".
std::string Plain(double value) {
  const double size = std::abs(value);
  const bool whole = value == std::round(value) && size < 1e6;
  if (size < 1e4 || size >= 1e9) {
    return whole ? absl::StrFormat("%.0f", value) : ShortExponent(absl::StrFormat("%.4g", value));
  }
  const double unit = std::pow(10, std::floor(std::log10(size)) - 3);
  return FormatCount(std::llround(whole ? value : std::round(value / unit) * unit));
}

}  // namespace

Unit UnitFor(double value, absl::string_view unit) {
  static constexpr Unit kSeconds[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}};
  static constexpr Unit kBytes[] = {
      {0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1, " B"}};
  const auto find = [value](const auto& units) {
    for (const Unit& candidate : units) {
      // 0.9999995 s is 1 s in four digits.
      if (std::abs(value) >= candidate.size * 0.99995) return candidate;
    }
    return *(std::end(units) - 1);
  };
  return unit == "s" ? find(kSeconds) : unit == "bytes" ? find(kBytes) : Unit{1, ""};
}

std::string FormatQuantity(double value, absl::string_view unit) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (unit != "s" && unit != "bytes") return Plain(value);
  if (value == 0) return unit == "s" ? "0 s" : "0 B";
  const Unit scale = UnitFor(value, unit);
  return absl::StrCat(ShortExponent(absl::StrFormat("%.4g", value / scale.size)), scale.suffix);
}

std::string FormatCount(std::int64_t value) {
  std::string digits = absl::StrCat(value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, 1, ',');
  return digits;
}

std::string FormatPercent(double fraction) {
  return std::isfinite(fraction) ? absl::StrFormat("%.1f %%", 100 * fraction) : "-";
}

std::string FormatRatio(double ratio) { return std::isfinite(ratio) ? absl::StrFormat("%.3g", ratio) : "-"; }

std::string ShortExponent(absl::string_view number) {
  return absl::StrReplaceAll(number, {{"e+0", "e"}, {"e+", "e"}, {"e-0", "e-"}});
}

}  // namespace plait::base
